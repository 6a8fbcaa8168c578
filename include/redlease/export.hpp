#pragma once
// Names what the shared library shows; everything else in it is hidden.
#define REDLEASE_EXPORT [[gnu::visibility("default")]]

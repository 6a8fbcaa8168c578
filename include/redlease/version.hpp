#pragma once
// The one place where the version stands: CMake reads it from here.
#define REDLEASE_VERSION_MAJOR 0
#define REDLEASE_VERSION_MINOR 1
#define REDLEASE_VERSION_PATCH 0

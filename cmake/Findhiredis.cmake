# Provides hiredis::hiredis, for `#include <hiredis/hiredis.h>`, from the first of
#   - a target of that name that the project has already,
#   - hiredis' own CMake package, which is there since 1.0 where hiredis was built with CMake,
#   - a header and a library, static or shared. (Debian 12's 0.14.1 has a package file, but one that defines no target.)
# hiredis_ROOT points elsewhere, as for any package; hiredis_LIBRARY names one library file.

if(TARGET hiredis::hiredis)
  get_target_property(hiredis_imported hiredis::hiredis IMPORTED)
  if(NOT hiredis_imported)
    set(hiredis_FOUND TRUE)  # a part of this build, whose headers bear no installed version yet
    return()
  endif()
elseif(NOT hiredis_LIBRARY)
  find_package(hiredis 1 CONFIG QUIET)  # without a number ours would be handed on, and 0.14 does not admit 1.x there
endif()

if(TARGET hiredis::hiredis)
  get_target_property(hiredis_dirs hiredis::hiredis INTERFACE_INCLUDE_DIRECTORIES)
  find_path(hiredis_INCLUDE_DIR hiredis/hiredis.h PATHS ${hiredis_dirs} NO_DEFAULT_PATH)
  set(hiredis_origin hiredis::hiredis)
else()
  find_path(hiredis_INCLUDE_DIR hiredis/hiredis.h)
  find_library(hiredis_LIBRARY hiredis)
  set(hiredis_origin ${hiredis_LIBRARY})
endif()
mark_as_advanced(hiredis_DIR hiredis_INCLUDE_DIR hiredis_LIBRARY)

if(hiredis_INCLUDE_DIR)
  file(STRINGS ${hiredis_INCLUDE_DIR}/hiredis/hiredis.h hiredis_VERSION
    REGEX "^#define HIREDIS_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" hiredis_VERSION "${hiredis_VERSION}")
  string(REPLACE ";" "." hiredis_VERSION "${hiredis_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hiredis
  REQUIRED_VARS hiredis_origin hiredis_INCLUDE_DIR
  VERSION_VAR hiredis_VERSION
  REASON_FAILURE_MESSAGE "Install libhiredis-dev (Debian, Ubuntu) or hiredis, or set hiredis_ROOT.")

if(hiredis_FOUND AND NOT TARGET hiredis::hiredis)
  add_library(hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(hiredis::hiredis PROPERTIES
    IMPORTED_LOCATION ${hiredis_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${hiredis_INCLUDE_DIR})
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/redlease)
get_target_property(library_type redlease TYPE)
configure_package_config_file(cmake/redlease-config.cmake.in ${PROJECT_BINARY_DIR}/redlease-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/redlease-config-version.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS redlease EXPORT redlease-targets FILE_SET HEADERS)
install(EXPORT redlease-targets NAMESPACE redlease:: DESTINATION ${package_dir})
install(FILES
  ${PROJECT_BINARY_DIR}/redlease-config.cmake
  ${PROJECT_BINARY_DIR}/redlease-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Findhiredis.cmake
  DESTINATION ${package_dir})

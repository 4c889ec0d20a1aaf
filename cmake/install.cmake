# What `cmake --install` puts where, and the Debian packages that CPack makes of it. docs/install.md.
#
# The drop-in libnccl.so.2 goes into a folder of its own below the libraries: NVIDIA's library has the same name,
# and a program must choose which one it gets.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
  message(FATAL_ERROR "CMAKE_INSTALL_LIBDIR=${CMAKE_INSTALL_LIBDIR} and CMAKE_INSTALL_BINDIR=${CMAKE_INSTALL_BINDIR} "
    "must be relative to the prefix, so that what is installed can be moved")
endif()
set(nccl_dir ${CMAKE_INSTALL_LIBDIR}/topoccl)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/topoccl)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/topoccl)

# From a folder to another one below the same prefix.
function(topoccl_way variable from to)
  file(RELATIVE_PATH way ${PROJECT_BINARY_DIR}/${from} ${PROJECT_BINARY_DIR}/${to})
  set(${variable} ${way} PARENT_SCOPE)
endfunction()

topoccl_way(to_libraries ${nccl_dir} ${CMAKE_INSTALL_LIBDIR})
topoccl_way(programs_to_libraries ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_LIBDIR})
topoccl_way(pkgconfig_to_prefix ${CMAKE_INSTALL_LIBDIR}/pkgconfig .)

set_target_properties(topoccl_library PROPERTIES EXPORT_NAME topoccl)
set_target_properties(topoccl_nccl PROPERTIES EXPORT_NAME nccl INSTALL_RPATH "$ORIGIN;$ORIGIN/${to_libraries}")

install(TARGETS topoccl_library EXPORT topoccl
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS topoccl_nccl EXPORT topoccl
  LIBRARY DESTINATION ${nccl_dir} COMPONENT runtime NAMELINK_COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/include/nccl.h ${PROJECT_SOURCE_DIR}/include/topoccl.h
  DESTINATION ${header_dir} COMPONENT development)

install(EXPORT topoccl NAMESPACE topoccl:: FILE topoccl-targets.cmake
  DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/topoccl-config.cmake.in
  ${PROJECT_BINARY_DIR}/topoccl-config.cmake INSTALL_DESTINATION ${package_dir})
# Structures of topoccl.h may grow until version 1.0.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/topoccl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/topoccl-config.cmake ${PROJECT_BINARY_DIR}/topoccl-config-version.cmake
  DESTINATION ${package_dir} COMPONENT development)

foreach(name topoccl topoccl-nccl)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

foreach(package libtopoccl0=runtime libtopoccl-dev=development topoccl-tools=tools)
  string(REPLACE "=" ";" package ${package})
  list(GET package 0 name)
  list(GET package 1 component)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name}
    RENAME copyright COMPONENT ${component})
endforeach()

# Programs find the library beside them, wherever the prefix is moved to.
function(topoccl_install_programs)
  foreach(program ${ARGN})
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${programs_to_libraries}")
      install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
    endif()
  endforeach()
endfunction()
topoccl_install_programs(topoccl_devices all_gather_perf all_reduce_perf alltoall_perf alltoallv_perf broadcast_perf
  gather_perf overlap_perf reduce_perf reduce_scatter_perf scatter_perf sendrecv_perf)

# ---- Debian packages: cpack -G DEB ----

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME topoccl)
set(CPACK_PACKAGE_VENDOR TopoCCL)
set(CPACK_PACKAGE_CONTACT "TopoCCL maintainers <topoccl@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime development tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libtopoccl0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "All-reduce, broadcast, all-gather and the like between processes and threads of one
host, on its CPU cores. Contains libtopoccl.so.0, and in a folder of its own a
libnccl.so.2 that programs written for NCCL can load instead of NVIDIA's.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtopoccl-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libtopoccl0 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Headers, CMake package and pkg-config files of TopoCCL")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME topoccl-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libtopoccl0 (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "Benchmarks of TopoCCL in the manner of nccl-tests, and its list of devices")
include(CPack)

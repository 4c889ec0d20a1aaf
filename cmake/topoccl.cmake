# How every target of this project is built. Flags are set per target, never globally.

find_package(Threads REQUIRED)
include(GNUInstallDirs)

# The NCCL version of include/nccl.h, for the file name libnccl.so.VERSION.
set(NCCL_INTERFACE_VERSION 2.32.3)

# Programs land in build/<preset>/bin and libraries in build/<preset>/lib.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/static)
  # Programs look for the libraries beside them, also when the tree has moved.
  set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
endif()

add_library(topoccl_flags INTERFACE)
target_compile_features(topoccl_flags INTERFACE cxx_std_20)
target_compile_options(topoccl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${TOPOCCL_WERROR}>>:-Werror>
  # g++ 12 sees overlapping copies in "text" + std::string (its bug 105651).
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
target_include_directories(topoccl_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(topoccl_flags INTERFACE Threads::Threads)
# How the loops over elements are compiled. A product fused into the addition that follows rounds once where other
# processors round twice; ranks on different processors must agree on every bit. And marking the life of every vector
# in a block would make the address sanitizer's build of these loops take minutes.
set(TOPOCCL_LOOP_OPTIONS -ffp-contract=off)
if(TOPOCCL_SANITIZE MATCHES address)
  list(APPEND TOPOCCL_LOOP_OPTIONS -fno-sanitize-address-use-after-scope)
endif()

if(TOPOCCL_SANITIZE)
  # C programs may pass any number as an enum; the interface has to look at it to refuse it.
  target_compile_options(topoccl_flags INTERFACE
    -fsanitize=${TOPOCCL_SANITIZE} -fno-sanitize=enum -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(topoccl_flags INTERFACE -fsanitize=${TOPOCCL_SANITIZE})
endif()

# topoccl_room(NAME SOURCES a.cc ... DEPENDS other rooms and packages): one static library per folder
# of src, position independent so that libtopoccl.so can take it in.
function(topoccl_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;DEPENDS" ${ARGN})
  if(ROOM_SOURCES)
    add_library(topoccl_${name} STATIC ${ROOM_SOURCES})
    target_link_libraries(topoccl_${name} PUBLIC ${ROOM_DEPENDS} PRIVATE topoccl_flags)
    set_target_properties(topoccl_${name} PROPERTIES
      POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_include_directories(topoccl_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_compile_features(topoccl_${name} PUBLIC cxx_std_20)
    target_link_libraries(topoccl_${name} PUBLIC Threads::Threads)
  else()
    add_library(topoccl_${name} INTERFACE)
    target_link_libraries(topoccl_${name} INTERFACE ${ROOM_DEPENDS})
    target_include_directories(topoccl_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  endif()
endfunction()

# topoccl_test(NAME SOURCES a.cc ... DEPENDS rooms [LABELS ...]): a GoogleTest program, one ctest entry.
function(topoccl_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE topoccl_flags ${TEST_DEPENDS} GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(TOPOCCL_SANITIZE MATCHES thread)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/sanitizer_options.cc)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(TEST_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}")
  endif()
endfunction()

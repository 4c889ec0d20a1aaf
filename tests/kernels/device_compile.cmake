# A test that compiles device_compile.cu with nvcc, where there is one. nvcc runs as a test's command: the
# project itself never needs CUDA. Sanitizers have no say in device code: once is enough.
if(TOPOCCL_SANITIZE)
  return()
endif()

find_program(TOPOCCL_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)

if(TOPOCCL_NVCC)
  add_test(NAME kernels_device_compile
    COMMAND ${TOPOCCL_NVCC} -c ${CMAKE_CURRENT_SOURCE_DIR}/device_compile.cu
      -o ${CMAKE_CURRENT_BINARY_DIR}/device_compile.o
      -std=c++20 -Werror all-warnings -I${PROJECT_SOURCE_DIR}/src
      -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90)
  set_tests_properties(kernels_device_compile PROPERTIES LABELS slow)
else()
  message(STATUS "nvcc not found: kernels_device_compile will be skipped")
  add_test(NAME kernels_device_compile
    COMMAND ${CMAKE_COMMAND} -E echo "skipped: no nvcc in PATH, CUDA_HOME or /usr/local/cuda")
  set_tests_properties(kernels_device_compile PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
endif()

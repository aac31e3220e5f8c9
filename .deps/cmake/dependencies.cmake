# Imported targets of all external libraries. All headers are system headers.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# LLVM Support: the static archives alone. The shared libLLVM costs 38 ms and 51 MB at every start.
set(llvm_root /usr/lib/llvm-19 CACHE PATH "LLVM 19 installation")
foreach(archive LLVMSupport LLVMDemangle)
  if(NOT EXISTS "${llvm_root}/lib/lib${archive}.a")
    message(FATAL_ERROR "${llvm_root}/lib/lib${archive}.a is missing: run `make setup`")
  endif()
endforeach()
add_library(deps_llvm_support INTERFACE)
add_library(deps::llvm_support ALIAS deps_llvm_support)
target_include_directories(deps_llvm_support SYSTEM INTERFACE "${llvm_root}/include")
target_link_libraries(deps_llvm_support INTERFACE "${llvm_root}/lib/libLLVMSupport.a"
                      "${llvm_root}/lib/libLLVMDemangle.a" z zstd tinfo Threads::Threads ${CMAKE_DL_LIBS})

# ANTLR: the static runtime; the tool generates the parser at build time.
find_program(PIPER_ANTLR antlr4 REQUIRED)
find_library(antlr4_archive libantlr4-runtime.a REQUIRED)
add_library(deps_antlr4_runtime INTERFACE)
add_library(deps::antlr4_runtime ALIAS deps_antlr4_runtime)
target_include_directories(deps_antlr4_runtime SYSTEM INTERFACE /usr/include/antlr4-runtime)
target_link_libraries(deps_antlr4_runtime INTERFACE "${antlr4_archive}" Threads::Threads)

# libsodium: the static archive, so that the program needs no further library where it runs.
find_library(sodium_archive libsodium.a REQUIRED)
find_path(sodium_headers sodium.h REQUIRED)
add_library(deps_sodium INTERFACE)
add_library(deps::sodium ALIAS deps_sodium)
target_include_directories(deps_sodium SYSTEM INTERFACE "${sodium_headers}")
target_link_libraries(deps_sodium INTERFACE "${sodium_archive}" Threads::Threads)

# LibTorch, out of the wheel. `find_package(Torch)` would ask for a whole CUDA toolkit.
# The compiler half builds without it: -DPIPER_TORCH=OFF leaves out the parts that need it.
option(PIPER_TORCH "Build what needs LibTorch" ON)
if(PIPER_TORCH)
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/.deps/fetch_wheels.py" --path
                  OUTPUT_VARIABLE PIPER_WHEELS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT EXISTS "${PIPER_WHEELS}/torch/lib/libtorch_cpu.so")
    message(FATAL_ERROR "LibTorch is not in ${PIPER_WHEELS}: run `make setup`, or configure with -DPIPER_TORCH=OFF")
  endif()
  set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               "${CMAKE_SOURCE_DIR}/.deps/wheels.json")
  foreach(library c10 torch_cpu)
    add_library(deps::${library} SHARED IMPORTED GLOBAL)
    set_target_properties(deps::${library} PROPERTIES
      IMPORTED_LOCATION "${PIPER_WHEELS}/torch/lib/lib${library}.so"
      INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=1")
    target_include_directories(deps::${library} SYSTEM INTERFACE "${PIPER_WHEELS}/torch/include")
    # Without the neighbours the linker would have to search libcudart and libcupti.
    target_link_options(deps::${library} INTERFACE "LINKER:--unresolved-symbols=ignore-in-shared-libs")
  endforeach()
  set_target_properties(deps::torch_cpu PROPERTIES INTERFACE_LINK_LIBRARIES "deps::c10;Threads::Threads")
endif()

# Opened at run time if present: NVRTC for the tests of CUDA kernels.
execute_process(COMMAND "${Python3_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/.deps/fetch_wheels.py" --path --group test
                OUTPUT_VARIABLE PIPER_CUDA_WHEELS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

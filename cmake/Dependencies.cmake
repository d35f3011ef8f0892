# Every dependency, with its reason. All come from Debian 12; deploy/debian-packages.txt installs them.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)          # Asio, Beast (net/ only); JSON (everywhere)
find_package(OpenSSL REQUIRED)                             # SHA-256, TLS
find_package(fmt REQUIRED)                                 # text formatting (GCC 12 has no <format>)
find_package(spdlog REQUIRED)                              # log sinks
find_package(CLI11 REQUIRED)                               # command line
find_package(tomlplusplus REQUIRED)                        # configuration file
find_package(simdjson REQUIRED)                             # a glance at long bodies (JSON)
find_package(prometheus-cpp CONFIG REQUIRED)               # metrics text format
find_package(SQLite3 REQUIRED)                             # records
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)  # checksums of large data
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)    # many reads from an SSD at a time
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)        # SIMD with run-time target choice

if(SLUICE_BUILD_TESTS)
    find_package(GTest REQUIRED)
endif()

// Any bytes into every parser of the port; what one accepts must come back equal.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "port/abort.h"
#include "port/generate.h"
#include "port/kv_events.h"
#include "port/kv_orders.h"
#include "port/kv_pull.h"
#include "port/kv_status.h"
#include "port/load_report.h"
#include "port/server_info.h"

namespace {

template <class Parse>
void check(Parse parse, std::string_view text) {
    const auto value = parse(text);
    if (!value) return;
    const auto back = parse(sluice::port::to_json(*value));
    SLUICE_ASSERT(back.has_value());
    SLUICE_ASSERT(*back == *value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check(sluice::port::parse_generate_request, text);
    check(sluice::port::parse_generate_frame, text);
    check(sluice::port::parse_server_info, text);
    check(sluice::port::parse_abort_request, text);
    check(sluice::port::parse_kv_event_page, text);
    check(sluice::port::parse_load_report, text);
    check(sluice::port::parse_kv_pull_request, text);
    check(sluice::port::parse_kv_release_request, text);
    check(sluice::port::parse_kv_status, text);
    check(sluice::port::parse_kv_drop_order, text);
    check(sluice::port::parse_kv_pin_order, text);
    check(sluice::port::parse_kv_nodes_order, text);
    check(sluice::port::parse_kv_order_result, text);
    return 0;
}

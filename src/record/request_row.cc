#include "record/request_row.h"

namespace sluice::record {

std::chrono::microseconds RequestRow::held() const {
    std::chrono::microseconds sum{0};
    for (const Leg& leg : legs) {
        if (leg.pool == pool) sum += leg.held;
    }
    return sum;
}

}  // namespace sluice::record

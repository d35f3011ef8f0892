#pragma once

// What the query of an admin address chooses among the records.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "record/card_builder.h"
#include "record/record_reader.h"

namespace sluice::gateway {

using QueryFields = std::map<std::string, std::string, std::less<>>;

[[nodiscard]] std::int64_t unix_ms();

/// since, pool, role, id, limit. Without `since` it is the last hour, of one id all time. An unknown
/// field is an error with its name.
[[nodiscard]] Result<record::RecordQuery> read_record_query(const QueryFields& fields,
                                                            std::int64_t now_ms);

/// baseline, candidate, since, min_samples; `format` is passed over.
[[nodiscard]] Result<record::CardOptions> read_card_query(const QueryFields& fields,
                                                          std::int64_t now_ms);

}  // namespace sluice::gateway

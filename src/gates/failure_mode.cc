#include "gates/failure_mode.h"

#include <algorithm>

namespace sluice::gates {
namespace {

// In the order of the enumeration.
constexpr auto kTexts = std::to_array<FailureText>({
    {"worker_crashes", "a worker ends in the middle of answers"},
    {"no_spare_worker", "the only worker is down, for a while or for an upgrade"},
    {"worker_stalls", "a worker still accepts requests, but makes no progress"},
    {"wrong_model", "a worker serves another model, or other weights, than was meant"},
    {"model_file_missing", "the model's file is not there at the next start"},
    {"poison_request", "one request takes down every worker that it is tried on"},
    {"overload", "more requests come than the pool can answer in time"},
    {"upstream_key_missing", "the key for the pool is not in the environment"},
    {"upstream_overheard", "somebody between the gateway and the pool reads prompts or the key"},
    {"tenants_share_cache", "one tenant learns from cached prefixes what another one asked"},
    {"price_missing", "nobody knows what an answer of the pool costs"},
    {"candidate_errors", "the candidate fails more often than the pool that answers"},
    {"candidate_slow", "the candidate answers later than the pool that answers"},
    {"candidate_invalid_output", "the candidate breaks JSON or tool calls"},
    {"candidate_answers_differ", "the candidate says something else"},
    {"blind_split", "the candidate answers clients before its answers were compared"},
    {"split_forgotten", "a trial is never ended by anybody"},
    {"no_room_to_roll_back", "the stable pool can't take all traffic back"},
    {"bad_rollout", "a new build, new weights or new flags of the stable pool are worse"},
    {"noise_taken_for_fault", "equal pools differ by chance, and a good candidate is sent back"},
    {"rolled_back_comes_back", "a restart or a reload brings a candidate back that was sent away"},
    {"bad_configuration", "a mistake in the configuration file"},
    {"sluice_upgrade", "a new version of Sluice itself has to be taken back"},
    {"stranger_asks", "somebody without a key uses the service"},
    {"key_leaks", "a client's key is in the wrong hands"},
    {"tenant_flood", "one tenant takes all there is"},
    {"clients_overheard", "somebody between clients and the gateway reads along"},
    {"admin_reached", "somebody who should not reaches the admin address"},
    {"certificate_expires", "the certificate ends, and no client connects any more"},
    {"nothing_recorded", "something happened, and no record of it exists"},
    {"record_disk_full", "the disk of the records is full"},
    {"evidence_gone", "records are deleted before anybody has looked"},
    {"stable_degrades", "the pool that answers gets slow or wrong, and nobody notices"},
    {"gateway_crashes", "the gateway's process ends"},
    {"machine_lost", "the machine or its network is gone"},
});
static_assert(kTexts.size() == static_cast<std::size_t>(Failure::kMachineLost) + 1);

template <class Row>
const Row* row_of(const std::vector<Row>& rows, const PoolConfig& pool) {
    const auto found =
        std::ranges::find_if(rows, [&](const Row& row) { return *row.pool == *pool.name; });
    return found == rows.end() ? nullptr : &*found;
}

}  // namespace

const FailureText& text_of(Failure failure) { return kTexts[static_cast<std::size_t>(failure)]; }

std::optional<Failure> parse_failure(std::string_view name) {
    const auto* const found = std::ranges::find(kTexts, name, &FailureText::name);
    if (found == kTexts.end()) return std::nullopt;
    return static_cast<Failure>(found - kTexts.begin());
}

std::vector<std::string_view> failure_names() {
    std::vector<std::string_view> names;
    for (const FailureText& text : kTexts) names.push_back(text.name);
    return names;
}

PoolRole role_of(const ServiceConfig& config, const PoolConfig& pool) {
    return {.answers = *config.plan.stable == *pool.name,
            .split = row_of(config.plan.splits, pool),
            .shadow = row_of(config.plan.shadows, pool)};
}

std::vector<FailureMode> failure_modes(const ServiceConfig& config, const ServiceFacts& facts) {
    std::vector<FailureMode> modes;
    for (const PoolConfig& pool : config.pools) {
        const PoolRole role = role_of(config, pool);
        if (role.used()) add_pool_failures(config, pool, facts, modes);
        if (role.used() && !role.answers) add_candidate_failures(config, pool, modes);
    }
    add_change_failures(config, modes);
    add_access_failures(config, facts, modes);
    add_evidence_failures(config, facts, modes);
    return modes;
}

}  // namespace sluice::gates

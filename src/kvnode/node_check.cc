// NodeStore::verify: reading and checking all that a node holds. A thread of its own, at a pace that
// leaves the disk and memory to those who serve.

#include <future>
#include <thread>
#include <utility>

#include "kvnode/node_store.h"

namespace sluice::kvnode {
namespace {

constexpr std::uint64_t kBytesASecond = 512 * 1024 * 1024;

void pace(std::uint64_t bytes) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(bytes * 1'000'000'000 / kBytesASecond));
}

kv::WallTime wall_now() { return std::chrono::system_clock::now(); }

}  // namespace

bool NodeStore::verify(std::function<void(Checked)> done) {
    if (verifying_) return false;
    const bool taken = tasks_->submit(
        [this, done = std::move(done), loop = &loop_, alive = std::weak_ptr(alive_)]() mutable {
            const Checked checked = check_all();
            loop->post([this, done = std::move(done), alive, checked] {
                if (alive.expired()) return;
                verifying_ = false;
                done(checked);
            });
        });
    verifying_ = taken;
    return taken;
}

NodeStore::Checked NodeStore::check_all() {
    Checked checked;
    check_dram(checked);
    if (ssd_ != nullptr) check_ssd(checked);
    return checked;
}

void NodeStore::check_dram(Checked& checked) {
    std::vector<std::string> names;
    dram_->for_each(wall_now(),
                    [&](const kv::DramTier::Item& item) { names.emplace_back(item.name); });
    for (const std::string& name : names) {
        if (stopping_) return;
        const kv::SharedBytes value = dram_->peek(name, wall_now());
        if (!value) continue;
        const bool whole = is_what_it_says(name, value.bytes);
        ++(whole ? checked.whole : checked.damaged);
        checked.bytes += value.bytes.size();
        if (!whole) dram_->erase(name, kv::Removal::kCorrupt);
        pace(value.bytes.size());
    }
}

// The tier checks what it reads, and gives up what fails.
void NodeStore::check_ssd(Checked& checked) {
    std::vector<std::string> names;
    ssd_->for_each([&](const kv::SsdTier::Entry& entry) { names.push_back(entry.name); });
    for (const std::string& name : names) {
        if (stopping_) return;
        const auto read = std::make_shared<std::promise<Result<kv::SharedBytes>>>();
        auto value = read->get_future();
        ssd_->peek(name, wall_now(),
                   [read](Result<kv::SharedBytes> result) { read->set_value(std::move(result)); });
        const Result<kv::SharedBytes> got = value.get();
        if (!got && got.error().code() == ErrorCode::kNotFound) continue;
        const bool whole = got && is_what_it_says(name, got->bytes);
        ++(whole ? checked.whole : checked.damaged);
        if (!got) continue;
        if (!whole) ssd_->erase(name);
        checked.bytes += got->bytes.size();
        pace(got->bytes.size());
    }
}

}  // namespace sluice::kvnode

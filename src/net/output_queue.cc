#include "net/output_queue.h"

#include <utility>

#include "base/assert.h"

namespace sluice::net {
namespace {

constexpr std::size_t kMovedBytes = 4 * 1024;
constexpr std::size_t kPieceBytes = 64 * 1024;

}  // namespace

void OutputQueue::add(std::string_view data) {
    if (data.empty()) return;
    if (pieces_.empty() || pieces_.back().shared.owner ||
        pieces_.back().own.size() + data.size() > kPieceBytes) {
        pieces_.emplace_back();
    }
    pieces_.back().own += data;
    bytes_ += data.size();
}

void OutputQueue::move_in(std::string&& data) {
    if (data.size() < kMovedBytes) return add(std::string_view(data));
    bytes_ += data.size();
    pieces_.push_back({.own = std::move(data), .shared = {}});
}

void OutputQueue::share(SharedText&& data) {
    if (data.text.size() < kMovedBytes) return add(data.text);
    bytes_ += data.text.size();
    pieces_.push_back({.own = {}, .shared = std::move(data)});
}

std::size_t OutputQueue::front(std::span<std::string_view> pieces) const {
    std::size_t filled = 0;
    for (std::size_t i = first_; i < pieces_.size() && filled < pieces.size(); ++i) {
        const std::string_view piece = pieces_[i].text();
        pieces[filled++] = i == first_ ? piece.substr(offset_) : piece;
    }
    return filled;
}

void OutputQueue::drop(std::size_t count) {
    SLUICE_ASSERT(count <= bytes_);
    bytes_ -= count;
    if (bytes_ == 0) return clear();
    count += offset_;
    while (count >= pieces_[first_].text().size()) {
        count -= pieces_[first_].text().size();
        pieces_[first_] = {};
        ++first_;
    }
    offset_ = count;
}

void OutputQueue::clear() {
    pieces_ = {};
    first_ = offset_ = bytes_ = 0;
}

}  // namespace sluice::net

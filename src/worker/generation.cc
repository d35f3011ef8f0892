#include "worker/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "port/port_error.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

/// How soon a reader that has fallen behind is looked at again.
constexpr std::chrono::milliseconds kRetry{20};

}  // namespace

Generation::Generation(Host host, std::shared_ptr<net::HttpExchange> exchange,
                       const port::GenerateRequest& request)
    : host_(std::move(host)),
      rid_(request.rid),
      is_decode_(request.phase == port::Phase::kDecode),
      deadline_ms_(request.deadline_ms),
      mailbox_(std::make_shared<Mailbox>(request.stream ? Delivery::kEveryStep : Delivery::kAtEnd)),
      writer_(host_.loop, std::move(exchange),
              {.rid = request.rid,
               .prompt_tokens = request.input_ids.size(),
               .completion_tokens = request.resume_output_ids.size()},
              {.stream = request.stream, .heartbeat = host_.heartbeat}) {}

Result<void> Generation::start(port::GenerateRequest request) {
    if (looks_elsewhere(request)) {
        engine::Request wanted = to_engine(request);
        if (auto checked = host_.engine.check(wanted); !checked) return checked;
        if (auto room = host_.engine.check_room(); !room) return room;
        after_fetch_ = std::move(wanted);
        begin();
        fetch(request);
        return {};
    }
    if (auto submitted = submit(to_engine(std::move(request))); !submitted) return submitted;
    begin();
    return {};
}

/// Whether it may be sooner to have blocks brought from somewhere than to begin at once.
bool Generation::looks_elsewhere(const port::GenerateRequest& request) const {
    if (request.phase == port::Phase::kDecode || !request.kv.sources.empty()) return true;
    const std::size_t tokens = request.input_ids.size() + request.resume_output_ids.size();
    return !host_.kv.cache.tiers().empty() && tokens > engine::Engine::kBlockTokens;
}

Result<void> Generation::submit(engine::Request request) {
    const auto sink = [mailbox = mailbox_, loop = &host_.loop,
                       weak = weak_from_this()](const engine::Output& output) {
        if (!mailbox->put(output)) return;
        loop->post([weak] {
            if (const auto self = weak.lock()) self->on_output();
        });
    };
    return host_.engine.submit(std::move(request), sink);
}

void Generation::fetch(const port::GenerateRequest& request) {
    fetch_ = KvFetch::start({.loop = host_.loop,
                             .client = host_.kv.client,
                             .engine = host_.engine,
                             .options = host_.kv.options,
                             .releases = host_.kv.releases,
                             .tiers = host_.kv.cache.tiers()},
                            request, [weak = weak_from_this()](const KvFetch::Fetched& fetched) {
                                if (const auto self = weak.lock()) self->on_fetched(fetched);
                            });
}

void Generation::on_fetched(const KvFetch::Fetched& fetched) {
    const auto self = shared_from_this();  // What ends it lets go of it.
    fetch_.reset();
    host_.metrics.on_fetched(fetched);
    admitted_ = true;
    decision_ = to_decision(fetched.loads, fetched.predicted);
    engine::Request request = *std::exchange(after_fetch_, std::nullopt);
    const std::size_t tokens = request.input_ids.size() + request.resume_output_ids.size() - 1;
    if (const std::size_t missing = fetched.missing_tokens;
        is_decode_ && missing > host_.kv.options.recompute_max) {
        return end_with(
            {.type = port::FinishType::kError,
             .matched = {},
             .message = fmt::format("{} of {} tokens would have to be computed, but at most {} are",
                                    missing, tokens, host_.kv.options.recompute_max),
             .code = std::string(port::kKvUnavailable)});
    }
    fetched_tokens_ = fetched.tokens_by_source;
    std::vector<TokenId> known = request.input_ids;
    known.insert(known.end(), request.resume_output_ids.begin(), request.resume_output_ids.end());
    publication_.emplace(host_.publisher,
                         KvPublisher::Origin{.engine = &host_.engine, .producer = host_.producer},
                         fetched, std::move(known));
    request.imported_tokens = fetched.imported_tokens;
    if (mailbox_->delivery() == Delivery::kEveryStep)
        computing_ = {.began = std::chrono::steady_clock::now(), .predicted = fetched.predicted};
    if (const auto submitted = submit(std::move(request)); !submitted) {
        const Refusal refusal = to_refusal(submitted.error());
        end_with({.type = port::FinishType::kError,
                  .matched = {},
                  .message = refusal.error.message,
                  .code = refusal.error.code});
    }
}

void Generation::end_with(port::FinishReason reason) {
    const auto self = shared_from_this();
    deadline_.cancel();
    writer_.end(std::move(reason));
    host_.on_end(rid_);
}

void Generation::begin() {
    // A heart that beats while the engine is stuck would tell a lie; a fetch has deadlines of its own.
    const auto goes_on = [this] {
        const std::uint64_t steps = host_.engine.stats().steps;
        return std::exchange(steps_, steps) != steps || fetch_ != nullptr;
    };
    writer_.begin(goes_on, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->on_client_gone();
    });
    if (deadline_ms_ > 0) {
        deadline_ = host_.loop.call_after(std::chrono::milliseconds(deadline_ms_),
                                          [this] { abort("deadline"); });
    }
}

void Generation::abort(std::string reason) {
    if (abort_reason_.empty()) abort_reason_ = std::move(reason);
    if (const auto fetch = std::exchange(fetch_, nullptr)) {
        fetch->cancel();
        return end_with(
            {.type = port::FinishType::kAbort, .matched = {}, .message = abort_reason_});
    }
    host_.engine.abort(rid_);
}

void Generation::on_client_gone() {
    writer_.let_go();
    deadline_.cancel();
    abort("the client is gone");
}

// A reader that falls behind gets fewer and larger frames, never a longer queue.
void Generation::on_output() {
    if (writer_.is_behind()) {
        retry_ = host_.loop.call_after(kRetry, [this] { on_output(); });
        return;
    }
    auto output = mailbox_->take();
    if (!output) return;
    const auto self = shared_from_this();  // `on_end` lets go of it.
    note_admission(*output);
    if (!output->tokens.empty()) note_first_token();
    publish(*output);
    const bool ended = output->finish.has_value();
    if (ended) deadline_.cancel();
    if (writer_.is_open()) writer_.write(frame_of(std::move(*output)));
    if (ended) host_.on_end(rid_);
}

void Generation::note_admission(const engine::Output& output) {
    if (admitted_ || output.computed_tokens == 0) return;
    admitted_ = true;
    host_.metrics.on_admitted(output.prompt_tokens, output.cached_tokens);
}

void Generation::note_first_token() {
    const auto computing = std::exchange(computing_, std::nullopt);
    if (!computing) return;
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - computing->began;
    host_.metrics.on_first_token(took, computing->predicted);
    if (decision_) decision_->compute_took_us = to_microseconds(took);
}

// Until its first token a request computes its prompt from the front; what it finds on the way counts
// as cached.
void Generation::publish(const engine::Output& output) {
    if (!publication_) return;
    publication_->on_tokens(output.tokens);
    if (output.completion_tokens == 0)
        publication_->on_computed(output.cached_tokens + output.computed_tokens);
    if (output.finish && *output.finish != engine::Finish::kFailed &&
        *output.finish != engine::Finish::kAborted)
        publication_->on_end();
}

port::GenerateFrame Generation::frame_of(engine::Output output) {
    std::shared_ptr<const engine::HeldSequence> held = std::move(output.held);
    port::GenerateFrame frame = to_frame(rid_, std::move(output), abort_reason_, fetched_tokens_);
    if (!frame.output_ids.empty()) frame.kv_decision = std::exchange(decision_, std::nullopt);
    if (!held) return frame;
    frame.kv.emplace();
    frame.kv->source.keys = held->keys;
    frame.kv->source.tail_tokens = static_cast<std::uint32_t>(held->tail_tokens);
    frame.kv->hold_until_ms = static_cast<std::uint64_t>(host_.kv.options.hold_time.count());
    frame.kv->source.hold = host_.kv.holds.add({.sequence = std::move(held), .rank = host_.rank});
    return frame;
}

}  // namespace sluice::worker

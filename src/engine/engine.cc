#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "engine/block_root.h"
#include "engine/request_check.h"
#include "tensor/self_test.h"

namespace sluice::engine {
namespace {

KvPool::Shape pool_shape(const checkpoint::HyperParameters& p, const EngineOptions& options) {
    return {.blocks = options.pool_tokens / Engine::kBlockTokens,
            .block_tokens = Engine::kBlockTokens,
            .layers = p.layers,
            .row_floats = std::size_t{p.kv_rank} + p.rope};
}

std::size_t most_threads(const EngineOptions& options) {
    if (options.threads != kAutoThreads) return options.threads;
    return std::clamp(std::thread::hardware_concurrency(), 1U, 256U);
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::shared_ptr<const Model> model,
                                               EngineOptions options) {
    if (auto good = check_options(options); !good) return std::unexpected(good.error());
    if (auto exact = tensor::self_test(); !exact) return std::unexpected(exact.error());
    auto pool = KvPool::create(pool_shape(model->parameters(), options));
    if (!pool) return std::unexpected(pool.error());
    auto engine =
        std::unique_ptr<Engine>(new Engine(std::move(model), std::move(options), std::move(*pool)));
    const EngineOptions& made = engine->options_;
    auto speculator = Speculator::create(made.speculation, engine->model_, engine->forward_,
                                         made.step_tokens, made.running_max);
    if (!speculator) return std::unexpected(speculator.error());
    engine->speculator_ = std::move(*speculator);
    engine->choose_threads();
    return engine;
}

MemoryUse Engine::memory_use(const std::shared_ptr<const Model>& model,
                             const EngineOptions& options) {
    ThreadTeam team(most_threads(options));
    const tensor::DryRun dry;
    const Forward forward(model, team, options.step_tokens);
    std::size_t pools = KvPool::bytes(pool_shape(model->parameters(), options));
    if (Speculator::uses_head(options.speculation, *model))
        pools += KvPool::bytes(MtpDrafter::pool_shape(model->parameters(), options.running_max));
    return {.embedding = model->embedding_bytes(),
            .weights = model->weights().bytes,
            .kv_pool = pools,
            .activations = dry.bytes()};
}

// Times the model's own steps on blocks that nobody has taken yet; what they leave there is never read.
void Engine::choose_threads() {
    if (options_.threads != kAutoThreads) {
        threads_ = ThreadChoice::fixed(options_.threads);
        return;
    }
    std::vector<BlockIndex> blocks;
    std::size_t rows_max = std::min<std::size_t>(options_.step_tokens, 256);
    while (blocks.size() * kBlockTokens < rows_max && pool_.available() > 0)
        blocks.push_back(*pool_.allocate());
    rows_max = std::min(rows_max, blocks.size() * kBlockTokens);
    const std::uint32_t vocabulary = model_->parameters().vocabulary;
    const auto time_step = [&](std::size_t rows, std::size_t threads) {
        constexpr std::size_t kDecodeRows = 16;  // A step of more rows is mostly prompt.
        Batch batch{.rows = {}, .block_tables = {blocks}};
        for (std::uint32_t i = 0; i < rows; ++i) {
            batch.rows.push_back({.token = static_cast<TokenId>(i % vocabulary),
                                  .position = i,
                                  .sequence = 0,
                                  .wants_logits = rows <= kDecodeRows || i + 1 == rows});
        }
        team_.use(threads);
        return median_time(
            [&] { forward_.run(batch, pool_, [](std::size_t, std::span<float>) {}); });
    };
    const auto start = std::chrono::steady_clock::now();
    threads_ = ThreadChoice::measure(team_.size(), rows_max, time_step);
    pool_.release(blocks);
    log::info("threads of a step: {} (measured in {} ms)", threads_.to_string(),
              std::chrono::duration_cast<std::chrono::milliseconds>(
                  std::chrono::steady_clock::now() - start)
                  .count());
}

Engine::Engine(std::shared_ptr<const Model> model, EngineOptions options, KvPool pool)
    : model_(std::move(model)),
      options_(std::move(options)),
      key_root_(block_root(*model_, kBlockTokens, options_.kv_build)),
      team_(most_threads(options_)),
      threads_(ThreadChoice::fixed(team_.size())),
      pool_(std::move(pool)),
      cost_(model_->parameters()),
      board_(cost_),
      scheduler_(pool_,
                 {.running_max = options_.running_max,
                  .step_tokens = options_.step_tokens,
                  .prefill_chunk = options_.prefill_chunk,
                  .step_time = options_.step_time},
                 cost_),
      forward_(model_, team_, options_.step_tokens),
      computer_({.options = options_,
                 .team = team_,
                 .threads = threads_,
                 .pool = pool_,
                 .scheduler = scheduler_,
                 .forward = forward_,
                 .cost = cost_},
                model_->parameters().vocabulary),
      desk_(pool_,
            [this] { add_command({.blocks = [](BlockDesk& desk) { desk.take_returns(); }}); }) {
    pool_.observe(options_.block_observer);
    if (model_->parameters().eos) end_tokens_.push_back(*model_->parameters().eos);
    publish_stats();
}

Engine::~Engine() { stop(); }

std::size_t Engine::context_tokens() const {
    return std::min<std::size_t>(model_->parameters().context_length,
                                 pool_.shape().blocks * kBlockTokens);
}

Result<void> Engine::check(const Request& request) const {
    return check_request(request, model_->parameters().vocabulary, context_tokens());
}

Result<void> Engine::room_under_lock() const {
    const std::size_t most = options_.running_max + options_.waiting_max;
    if (live_.size() < most) return {};
    return std::unexpected(
        Error(ErrorCode::kExhausted,
              fmt::format("{} requests are running or waiting, which is the limit", most)));
}

Result<void> Engine::check_room() const {
    const std::lock_guard lock(mutex_);
    return room_under_lock();
}

Result<void> Engine::submit(Request request, OutputSink sink) {
    if (auto ok = check(request); !ok) return ok;
    if (options_.faults.other_sampling) ++request.sampling.seed;
    SequencePtr sequence =
        make_sequence(std::move(request), std::move(sink), key_root_, end_tokens_, kBlockTokens);
    {
        const std::lock_guard lock(mutex_);
        if (stopping_)
            return std::unexpected(Error(ErrorCode::kUnavailable, "the engine is stopping"));
        if (auto room = room_under_lock(); !room) return room;
        if (!live_.insert(sequence->request.id).second)
            return std::unexpected(Error::invalid("a request with this id is live", "id"));
        sequence->arrival = arrivals_++;
        commands_.push_back({.sequence = std::move(sequence)});
    }
    wake_.notify_one();
    prepare_next_step();
    return {};
}

void Engine::abort(std::string id) {
    {
        const std::lock_guard lock(mutex_);
        if (!live_.contains(id)) return;
        commands_.push_back({.id = std::move(id)});
    }
    wake_.notify_one();
}

void Engine::with_blocks(std::function<void(BlockDesk&)> work) {
    add_command({.blocks = std::move(work)});
    prepare_next_step();
}

void Engine::add_command(Command command) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return;
        commands_.push_back(std::move(command));
    }
    wake_.notify_one();
}

void Engine::start() {
    SLUICE_ASSERT(!thread_.joinable());
    thread_ = std::thread([this] { run(); });
}

void Engine::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    take_commands();
    std::vector<std::string> left;
    {
        const std::lock_guard lock(mutex_);
        left.assign(live_.begin(), live_.end());
    }
    for (const std::string& id : left) finish(id, Finish::kAborted);
}

void Engine::run() {
    // Those that wait may need blocks that are held outside: only a command can change that.
    bool stuck = false;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this, &stuck] {
                return stopping_ || !commands_.empty() ||
                       (!stuck && scheduler_.running() + scheduler_.waiting() > 0);
            });
            if (stopping_) return;
        }
        stuck = !step();
    }
}

void Engine::take_commands() {
    {
        const std::lock_guard lock(mutex_);
        taken_.swap(commands_);
    }
    for (Command& command : taken_) {
        if (command.sequence) {
            scheduler_.add(std::move(command.sequence));
        } else if (command.blocks) {
            command.blocks(desk_);
        } else {
            finish(command.id, Finish::kAborted);
        }
    }
    taken_.clear();
}

// A computing step uses the pool's pages and its own sequences; neither a place in the queue nor a
// holder more of a block concerns it. Aborts wait, because they give away what it uses.
void Engine::prepare_next_step() {
    const std::unique_lock preparing(preparing_, std::try_to_lock);
    if (!preparing || !computing_) return;
    {
        const std::lock_guard lock(mutex_);
        prepared_commands_.swap(commands_);
    }
    // Without mutex_, because blocks may end a hold, which wakes the engine.
    for (Command& command : prepared_commands_) {
        if (command.blocks) std::exchange(command.blocks, nullptr)(desk_);
        if (!command.sequence) continue;
        scheduler_.add(std::move(command.sequence));
        ++prepared_;
    }
    std::erase_if(prepared_commands_, [](const Command& command) { return command.id.empty(); });
    {
        const std::lock_guard lock(mutex_);
        commands_.insert(commands_.begin(), std::move_iterator(prepared_commands_.begin()),
                         std::move_iterator(prepared_commands_.end()));
    }
    prepared_commands_.clear();
    scheduler_.admit();
}

void Engine::set_computing(bool computing) {
    const std::lock_guard preparing(preparing_);
    computing_ = computing;
}

bool Engine::step() {
    take_commands();
    speculator_->propose(scheduler_);
    const std::span<const StepPart> parts = scheduler_.plan();
    if (!parts.empty()) {
        computer_.compute(parts, *speculator_, [this](bool computes) { set_computing(computes); });
        ++steps_;
        plant_faults();
    }
    publish_stats();
    if (parts.empty()) return false;
    emit(parts);
    return true;
}

void Engine::plant_faults() {
    const FaultPoints& faults = options_.faults;
    if (faults.slow_step.count() > 0) std::this_thread::sleep_for(faults.slow_step);
    if (faults.crash_after && computer_.sampled_tokens() >= *faults.crash_after) std::abort();
    if (faults.stall_after && computer_.sampled_tokens() >= *faults.stall_after) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_; });
    }
}

void Engine::emit(std::span<const StepPart> parts) {
    for (const StepPart& part : parts) {
        Sequence& sequence = *part.sequence;
        Output& progress = sequence.progress;
        progress.prompt_tokens = sequence.prompt_tokens;
        progress.cached_tokens = sequence.cached;
        progress.completion_tokens = sequence.output_tokens();
        if (progress.finish) {
            finish(sequence.request.id, *progress.finish);
            continue;
        }
        sequence.sink(progress);
        progress.tokens.clear();
        progress.logprobs.clear();
        // What was computed of the input goes out with the first token.
        if (progress.completion_tokens > sequence.request.resume_output_ids.size())
            progress.input_logprobs.clear();
    }
}

// Gives everything back first, so that whoever hears of the end finds it freed.
void Engine::finish(std::string_view id, Finish how) {
    const bool hands_over = how == Finish::kHandedOver;
    const SequencePtr sequence = hands_over ? scheduler_.take_out(id) : scheduler_.remove(id);
    // An abort that came after the end; its id may be another request's by now.
    if (!sequence) return;
    {
        const std::lock_guard lock(mutex_);
        live_.erase(std::string(id));
    }
    if (hands_over) sequence->progress.held = hold_blocks(*sequence);
    publish_stats();
    sequence->progress.prompt_tokens = sequence->prompt_tokens;
    sequence->progress.completion_tokens = sequence->output_tokens();
    sequence->progress.cached_tokens = sequence->cached;
    sequence->progress.finish = how;
    sequence->sink(sequence->progress);
}

std::shared_ptr<const HeldSequence> Engine::hold_blocks(Sequence& sequence) {
    auto held = std::make_shared<HeldSequence>();
    const std::size_t full = sequence.computed / kBlockTokens;
    held->root = sequence.names.root();
    held->keys.assign(sequence.keys.begin(),
                      sequence.keys.begin() + static_cast<std::ptrdiff_t>(full));
    held->tail_tokens = sequence.computed % kBlockTokens;
    if (held->tail_tokens > 0) {
        const kv::BlockKey& parent = full == 0 ? held->root : held->keys.back();
        const std::size_t begin = full * kBlockTokens;
        held->tail_key = sequence.names.child(
            parent, begin, std::span(sequence.tokens).subspan(begin, held->tail_tokens));
    }
    const std::size_t used = full + (held->tail_tokens > 0 ? 1 : 0);
    pool_.release(std::span(sequence.blocks).subspan(used));
    sequence.blocks.resize(used);
    held->blocks = desk_.hold(std::move(sequence.blocks));
    return held;
}

void Engine::publish_stats() {
    board_.publish({.running = scheduler_.running(),
                    .waiting = scheduler_.waiting(),
                    .pending_tokens = scheduler_.pending_tokens(),
                    .blocks_held = pool_.held(),
                    .blocks_kept = pool_.kept(),
                    .blocks = pool_.shape().blocks,
                    .cached_tokens = scheduler_.cached_tokens(),
                    .evictions = pool_.evictions(),
                    .preemptions = scheduler_.preemptions(),
                    .steps = steps_,
                    .computed_tokens = computer_.computed_tokens(),
                    .prepared = prepared_},
                   cost_);
}

EngineStats Engine::stats() const {
    EngineStats now = board_.stats();
    const std::lock_guard lock(mutex_);
    now.live = live_.size();
    return now;
}

std::chrono::nanoseconds Engine::prefill_time(std::size_t first, std::size_t count) const {
    return board_.prefill_time(first, count, options_.prefill_chunk);
}

}  // namespace sluice::engine

#include "tests/engine/carry.h"

namespace sluice::engine {

Prefilled prefill(Engine& engine, Request request) {
    request.hand_over = true;
    request.id += "-prefill";
    auto answer = send(engine, std::move(request));
    run(engine);
    EXPECT_TRUE(answer->done());
    auto held = std::exchange(answer->last.held, nullptr);
    EXPECT_EQ(held != nullptr, answer->last.finish == Finish::kHandedOver);
    return {.answer = std::move(answer), .held = std::move(held)};
}

std::size_t carry(const HeldSequence& held, Engine& to, const std::set<std::size_t>& lost) {
    std::shared_ptr<BlockHold> room;
    const std::size_t count = held.blocks->size();
    to.with_blocks([&](BlockDesk& desk) { room = desk.allocate(count); });
    to.step();
    EXPECT_NE(room, nullptr);
    BlockDesk::Written written{.names = {}, .last_is_partial = held.tail_tokens > 0};
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t tokens = held.tokens_of(i, Engine::kBlockTokens);
        std::vector<std::byte> bytes(held.blocks->bytes(tokens));
        held.blocks->read(i, tokens, bytes);
        auto& name = written.names.emplace_back();
        if (lost.contains(i)) continue;
        room->write(i, tokens, bytes);
        name = held.name_of(i);
    }
    to.with_blocks([room, written](BlockDesk& desk) { desk.keep(*room, written); });
    return held.keys.size() * Engine::kBlockTokens + held.tail_tokens;
}

Request decoding(Request request, std::vector<TokenId> given, std::size_t imported) {
    request.id += "-decode";
    request.resume_output_ids = std::move(given);
    request.imported_tokens = imported;
    return request;
}

}  // namespace sluice::engine

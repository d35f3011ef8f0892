#pragma once

// Stores outside of any worker, and what can happen to the blocks in them.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "kv/block_name.h"
#include "tests/kv/folder.h"
#include "tests/kvnode/redis_process.h"
#include "tests/kvnode/test_node.h"

namespace sluice::worker::testing {

class Place {
public:
    virtual ~Place() = default;
    [[nodiscard]] virtual std::string url() const = 0;
    [[nodiscard]] virtual std::string source() const = 0;
    virtual void lose(const kv::BlockName& name) = 0;
    virtual void damage(const kv::BlockName& name) = 0;
    /// Then nobody else sees a damaged block.
    [[nodiscard]] virtual bool checks_what_it_reads() const { return false; }
    /// Blocks that lie there.
    [[nodiscard]] virtual std::size_t count() = 0;
    /// Everything stops and starts again, if that is possible.
    virtual void restart() {}
};

class DirectoryPlace final : public Place {
public:
    [[nodiscard]] std::string url() const override { return "dir://" + folder_.path().string(); }
    [[nodiscard]] std::string source() const override { return "directory"; }
    void lose(const kv::BlockName& name) override {
        ASSERT_TRUE(std::filesystem::remove(file_of(name)));
    }
    void damage(const kv::BlockName& name) override {
        std::fstream file(file_of(name), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(2'000);
        file.put('!');
    }
    [[nodiscard]] std::size_t count() override {
        std::size_t count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
            if (entry.path().filename().string().find("chat") != std::string::npos ||
                entry.path().filename().string().size() >= 64)
                count += entry.is_regular_file() ? 1 : 0;
        return count;
    }

private:
    [[nodiscard]] std::filesystem::path file_of(const kv::BlockName& name) const {
        const std::string hex = to_hex(name.key);
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
            if (entry.is_regular_file() &&
                entry.path().string().find(hex.substr(hex.size() - 40)) != std::string::npos)
                return entry.path();
        ADD_FAILURE() << "no file of " << hex;
        return {};
    }

    kv::testing::Folder folder_;
};

class RedisPlace final : public Place {
public:
    [[nodiscard]] std::string url() const override { return "redis://" + redis_.place(); }
    [[nodiscard]] std::string source() const override { return "node"; }
    void lose(const kv::BlockName& name) override {
        ASSERT_EQ(redis_.ask("DEL " + kv::to_wire(name)), ":1");
    }
    void damage(const kv::BlockName& name) override {
        static_cast<void>(redis_.ask("SETRANGE " + kv::to_wire(name) + " 2000 !!"));
    }
    [[nodiscard]] std::size_t count() override {
        return std::stoul(redis_.ask("DBSIZE").substr(1));
    }

private:
    kvnode::testing::RedisProcess redis_;
};

/// A node of ours.
class NodePlace : public Place {
public:
    [[nodiscard]] std::string url() const override {
        return "redis://127.0.0.1:" + std::to_string(node_->port());
    }
    [[nodiscard]] std::string source() const override { return "node"; }
    void lose(const kv::BlockName& name) override {
        ASSERT_EQ(ask({"DEL", kv::to_wire(name)}), ":1\r\n");
    }
    [[nodiscard]] bool checks_what_it_reads() const override { return true; }
    void damage(const kv::BlockName&) override {
        FAIL() << "nobody gets at a node's memory, and it takes no damaged block";
    }
    [[nodiscard]] std::size_t count() override { return std::stoul(ask({"DBSIZE"}).substr(1)); }

    std::string ask(const kvnode::testing::Words& words) {
        return kvnode::testing::TestClient(*node_).ask(words);
    }
    std::string value(const std::string& name) {
        const std::string reply = ask({"GET", name});
        const std::size_t start = reply.find("\r\n") + 2;
        return reply.substr(start, reply.size() - start - 2);
    }
    /// Of something that it has.
    std::string any_name() {
        const std::string reply = ask({"SCAN", "0", "COUNT", "1000"});
        const std::size_t start = reply.find("kv:");
        return reply.substr(start, reply.find("\r\n", start) - start);
    }

protected:
    explicit NodePlace(const kvnode::testing::TestNode::Options& options)
        : node_(std::make_unique<kvnode::testing::TestNode>(options)) {}

    std::unique_ptr<kvnode::testing::TestNode> node_;

public:
    NodePlace() : NodePlace(kvnode::testing::TestNode::Options{}) {}
};

/// The same with an SSD, which is all that is left of it after a restart.
class SsdNodePlace final : public NodePlace {
public:
    SsdNodePlace() : SsdNodePlace(std::make_unique<kv::testing::Folder>()) {}
    void damage(const kv::BlockName& name) override {
        const std::string part = value(kv::to_wire(name)).substr(2'000, 100);
        stop();
        for (const auto& entry : std::filesystem::directory_iterator(folder_->path())) {
            std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
            const std::string bytes(std::istreambuf_iterator<char>(file), {});
            const auto at = bytes.find(part);
            if (at == std::string::npos) continue;
            file.clear();
            file.seekp(static_cast<std::streamoff>(at));
            file.put(static_cast<char>(part.front() ^ 1));
        }
        start();
    }
    void restart() override {
        stop();
        start();
    }

private:
    explicit SsdNodePlace(std::unique_ptr<kv::testing::Folder> folder)
        : NodePlace({.ssd_dir = folder->path().string()}), folder_(std::move(folder)) {}
    void stop() {
        node_->sync();
        node_.reset();
    }
    void start() {
        node_ = std::make_unique<kvnode::testing::TestNode>(
            kvnode::testing::TestNode::Options{.ssd_dir = folder_->path().string()});
    }

    std::unique_ptr<kv::testing::Folder> folder_;
};

/// "Directory", "Redis", "Node", "SsdNode"; null: it needs something that is not installed.
inline std::unique_ptr<Place> make_place(std::string_view name) {
    if (name == "Directory") return std::make_unique<DirectoryPlace>();
    if (name == "Node") return std::make_unique<NodePlace>();
    if (name == "SsdNode") return std::make_unique<SsdNodePlace>();
    if (kvnode::testing::redis_server_program().empty()) return nullptr;
    return std::make_unique<RedisPlace>();
}

}  // namespace sluice::worker::testing

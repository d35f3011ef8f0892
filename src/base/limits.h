#pragma once

// Every bound that input can reach, in one table: `sluice limits` prints it, and code takes its
// constants from here. A queue, cache, retry, wait, or map without a line here is a bug.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::limits {

// HTTP
inline constexpr std::size_t kHeaderBytes = 64 * 1024;
inline constexpr std::size_t kHeaderFields = 256;
inline constexpr std::size_t kBodyBytes = 48 * 1024 * 1024;
/// Not a limit, but room behind a body, so that vector instructions may read past its end.
inline constexpr std::size_t kBodySlackBytes = 64;
inline constexpr std::size_t kChunkOverheadBytes = 16 * 1024;
inline constexpr std::size_t kConnections = 12'000;
inline constexpr std::size_t kPipelinedBytes = 64 * 1024;
inline constexpr std::size_t kStreamBacklogBytes = 4 * 1024 * 1024;
inline constexpr std::int64_t kTlsHandshakeSeconds = 10;
inline constexpr std::int64_t kHeaderSeconds = 10;
inline constexpr std::int64_t kBodySeconds = 60;
inline constexpr std::int64_t kIdleSeconds = 75;
inline constexpr std::int64_t kWriteStallSeconds = 60;
inline constexpr std::int64_t kLingerSeconds = 5;
inline constexpr std::size_t kLingerBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kSseEventBytes = 16 * 1024 * 1024;
inline constexpr std::size_t kUpstreamBodyBytes = 64 * 1024 * 1024;

// Requests
inline constexpr std::size_t kJsonDepth = 128;
inline constexpr std::size_t kJsonMemoryBytes = 256 * 1024 * 1024;
inline constexpr std::size_t kMessages = 16'384;
inline constexpr std::size_t kMaxTokens = 393'216;
inline constexpr std::size_t kStopStrings = 16;
inline constexpr std::size_t kStopStringBytes = 1'024;
inline constexpr std::size_t kStopTokenIds = 256;
inline constexpr std::size_t kLogitBiasEntries = 1'024;
inline constexpr std::size_t kTopLogprobs = 20;
inline constexpr std::size_t kRequestIdBytes = 128;
inline constexpr std::size_t kConversationKeyBytes = 512;
inline constexpr std::size_t kCollectedAnswerBytes = 256 * 1024;
inline constexpr std::size_t kCollectedToolCalls = 64;
inline constexpr std::size_t kQueuedRequests = 4'096;
inline constexpr std::int64_t kRequestSeconds = 600;

// Admission
inline constexpr std::size_t kApiKeys = 65'536;
inline constexpr std::size_t kApiKeyFileBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kTenants = 4'096;
inline constexpr std::size_t kQueuedBytes = 1024UL * 1024 * 1024;
inline constexpr std::size_t kQueuedOfTenant = 2'048;
inline constexpr std::int64_t kPriorityMax = 8;
inline constexpr std::int64_t kQueueWaitSeconds = 120;
inline constexpr std::int64_t kRetryAfterSeconds = 120;

// Engine port
inline constexpr std::size_t kPortSaltBytes = 1'024;
inline constexpr std::size_t kPortTextBytes = 64 * 1024;
inline constexpr std::size_t kPortSources = 64;
inline constexpr std::size_t kPortKvComponents = 256;
inline constexpr std::size_t kPortFrameBacklogBytes = 64 * 1024;
inline constexpr std::int64_t kPortDeadlineMilliseconds = 7LL * 24 * 60 * 60 * 1000;

// Dispatch and routing
inline constexpr std::size_t kQuarantinedPrompts = 4'096;
inline constexpr std::int64_t kQuarantineSeconds = 600;
inline constexpr std::size_t kPrefixIndexBlocks = 2 * 1024 * 1024;
inline constexpr std::int64_t kRegistrationSeconds = 3'600;
inline constexpr std::size_t kEtcdAnswerBytes = 16 * 1024 * 1024;

// KV blocks between workers
inline constexpr std::size_t kPortBlockKeys = 16'384;
inline constexpr std::size_t kKvBlockBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kKvEventsKept = 65'536;
inline constexpr std::size_t kKvEventsAnswered = 4'096;
inline constexpr std::size_t kKvHolds = 1'024;
inline constexpr std::int64_t kKvHoldSeconds = 30;
inline constexpr std::size_t kDpRanks = 64;

// KV cache
inline constexpr std::size_t kKvNameBytes = 512;
inline constexpr std::size_t kKvValueBytes = 512UL * 1024 * 1024;
inline constexpr std::size_t kKvStores = 256;
inline constexpr std::size_t kKvEpochsKept = 8;
inline constexpr std::size_t kKvPins = 65'536;
inline constexpr std::int64_t kKvPinSeconds = 24LL * 60 * 60;
inline constexpr std::size_t kKvPublishQueue = 1'024;
inline constexpr std::size_t kKvNodeClients = 10'500;
inline constexpr std::size_t kKvNodePipeline = 16'384;
inline constexpr std::size_t kKvNodeInputBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kKvNodeOutputBytes = 1024UL * 1024 * 1024;
inline constexpr std::int64_t kKvNodeStallSeconds = 30;
inline constexpr std::size_t kRespDepth = 8;
inline constexpr std::size_t kRespItems = 1024 * 1024;
inline constexpr std::size_t kRespInlineBytes = 64 * 1024;
inline constexpr std::size_t kSsdQueueBytes = 256 * 1024 * 1024;
inline constexpr std::size_t kSsdSegmentBytes = 256 * 1024 * 1024;
inline constexpr std::size_t kSsdReadsInFlight = 256;

// Simulator
inline constexpr std::size_t kSimWorkers = 10'000;

// Engine
inline constexpr std::size_t kEngineWaiting = 8'192;
inline constexpr std::size_t kEngineRunning = 128;
inline constexpr std::size_t kPackedCacheBytes = 64 * 1024 * 1024;
inline constexpr std::int64_t kPackedLockSeconds = 600;

// Files
inline constexpr std::size_t kGgufMetadataEntries = 65'536;
inline constexpr std::size_t kGgufTensors = 1'048'576;
inline constexpr std::size_t kGgufStringBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kGgufArrayEntries = 16 * 1024 * 1024;
inline constexpr std::size_t kGgufNameBytes = 65'535;
inline constexpr std::size_t kGgufAlignment = 1024 * 1024;
inline constexpr std::size_t kTokenizerFileBytes = 256 * 1024 * 1024;
inline constexpr std::size_t kVocabularyTokens = 1'048'576;
inline constexpr std::size_t kTokenizerMerges = 4 * 1024 * 1024;
inline constexpr std::size_t kAddedTokenBytes = 512;
inline constexpr std::size_t kConfigFileBytes = 4 * 1024 * 1024;
inline constexpr std::size_t kConfigKeyDepth = 64;
inline constexpr std::size_t kConfigErrors = 20;
inline constexpr std::size_t kConfigPools = 64;
inline constexpr std::int64_t kConfigWorkers = 64;
inline constexpr std::size_t kRegistryWorkers = 4'096;
inline constexpr std::int64_t kConfigConcurrency = 1'000'000;
inline constexpr std::int64_t kConfigThreads = 1'024;

// Traffic plans
inline constexpr std::size_t kPlanRows = 64;
inline constexpr std::int64_t kPlanLeaseSeconds = 7LL * 24 * 60 * 60;
inline constexpr std::int64_t kGuardWindowSeconds = 24LL * 60 * 60;
inline constexpr std::size_t kGuardSamples = 20'000;
inline constexpr std::int64_t kShadowConcurrent = 1'024;
inline constexpr std::size_t kTrafficStateBytes = 1024 * 1024;
inline constexpr std::size_t kAuditLogBytes = 16 * 1024 * 1024;
inline constexpr std::size_t kPlanTextBytes = 256 * 1024;

// Observation
inline constexpr std::size_t kAdminAnswerBytes = 256 * 1024 * 1024;
inline constexpr std::size_t kLogLineBytes = 8 * 1024;
inline constexpr std::size_t kMetricSeries = 2'048;
inline constexpr std::size_t kMetricLabelBytes = 128;

// Records
inline constexpr std::size_t kRecordQueueRows = 8'192;
inline constexpr std::size_t kRecordJournalBytes = 8 * 1024 * 1024;
inline constexpr std::size_t kRecordManifests = 256;
inline constexpr std::size_t kRecordLegs = 64;

// Service: what `sluice up` grants its processes
inline constexpr std::size_t kChildLineBytes = 64 * 1024;
inline constexpr std::size_t kChildBacklogBytes = 256 * 1024;
inline constexpr std::int64_t kChildStartSeconds = 3'600;
inline constexpr std::int64_t kChildStopSeconds = 40;
inline constexpr std::size_t kServiceStateBytes = 1024 * 1024;
inline constexpr std::size_t kServiceLogBytes = 64 * 1024 * 1024;

// What a checkpoint may say its model is
inline constexpr std::size_t kModelVocabulary = 4 * 1024 * 1024;
inline constexpr std::size_t kModelContextTokens = 64 * 1024 * 1024;
inline constexpr std::size_t kModelLayers = 1'024;
inline constexpr std::size_t kModelHeads = 1'024;
inline constexpr std::size_t kModelWidth = 65'536;
inline constexpr std::size_t kModelFeedForward = 1024 * 1024;
inline constexpr std::size_t kModelExperts = 4'096;

// Batch runs
inline constexpr std::size_t kBatchLineBytes = 64 * 1024 * 1024;
inline constexpr std::size_t kBatchRows = 64 * 1024 * 1024;
inline constexpr std::size_t kBatchInFlight = 4'096;

// Load tests and gates
inline constexpr std::size_t kTraceRequests = 4 * 1024 * 1024;
inline constexpr std::size_t kTraceTokens = 16 * 1024 * 1024;
inline constexpr std::size_t kTraceMilliseconds = 1'000'000'000'000;
inline constexpr std::size_t kMixShapes = 256;
inline constexpr std::size_t kTraceFileBytes = 1024UL * 1024 * 1024;
inline constexpr std::size_t kBaselineRows = 65'536;
inline constexpr std::size_t kGateFileBytes = 512UL * 1024 * 1024;
inline constexpr std::size_t kOwnerRows = 1'024;
inline constexpr std::size_t kOwnerTextBytes = 1'024;

struct Limit {
    std::string_view name;  ///< "http.header"
    std::uint64_t value;
    std::string_view unit;  ///< "bytes", "s", "count"
    std::string_view what;  ///< What happens beyond it.
};

/// All of the above, in the order of the file.
[[nodiscard]] std::span<const Limit> all();

}  // namespace sluice::limits

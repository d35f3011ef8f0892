#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "base/limits.h"
#include "checkpoint/byte_cursor.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/printable.h"

namespace sluice::checkpoint {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kSmallestAlignment = 8;  // An f64 value must not straddle.
constexpr std::uint32_t kDimensionsMax = 4;

// Least bytes an entry takes, so that a count can be checked before memory is set aside for it.
constexpr std::uint64_t kValueBytesMin = 8 + 4 + 1;
constexpr std::uint64_t kTensorBytesMin = 8 + 4 + 8 + 4 + 8;

using Checked = Result<void>;

std::unexpected<Error> corrupt(std::string message, std::string place) {
    return std::unexpected(Error::corrupt(std::move(message), std::move(place)));
}

/// Sorted by name; an error naming the first one that occurs twice.
template <class Item, class Name>
Result<std::vector<std::uint32_t>> index_by_name(const std::vector<Item>& items, Name name,
                                                 std::string_view kind) {
    std::vector<std::uint32_t> order(items.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto name_at = [&](std::uint32_t i) { return std::invoke(name, items[i]); };
    std::ranges::sort(order, {}, name_at);
    const auto twice = std::ranges::adjacent_find(order, {}, name_at);
    if (twice == order.end()) return order;
    return corrupt("this name occurs twice",
                   fmt::format("{} {}", kind, printable(name_at(*twice))));
}

DataType data_type(std::uint32_t raw_type) {
    switch (raw_type) {
        case kTensorF32: return DataType::kF32;
        case kTensorF16: return DataType::kF16;
        case kTensorBf16: return DataType::kBf16;
        case kTensorQ8_0: return DataType::kQ8_0;
        default: return DataType::kOther;
    }
}

}  // namespace

/// One pass from the first byte to the last tensor; each step leaves the file checked so far.
class GgufParser {
public:
    explicit GgufParser(std::span<const std::byte> bytes) : cursor_(bytes) { file_.bytes_ = bytes; }

    Result<GgufFile> parse() {
        using Step = Checked (GgufParser::*)();
        for (const Step step : {&GgufParser::read_counts, &GgufParser::read_metadata,
                                &GgufParser::read_alignment, &GgufParser::read_directory,
                                &GgufParser::place_tensors, &GgufParser::check_overlaps}) {
            if (Checked done = (this->*step)(); !done) return std::unexpected(done.error());
        }
        return std::move(file_);
    }

private:
    Checked read_counts() {
        const auto magic = cursor_.read<std::uint32_t>();
        file_.version_ = cursor_.read<std::uint32_t>();
        tensor_count_ = cursor_.read<std::uint64_t>();
        value_count_ = cursor_.read<std::uint64_t>();
        if (magic != kMagic)
            return corrupt("this is not a GGUF file: its magic is missing", "header");
        if (cursor_.failed()) return truncated("header");
        return check_version();
    }

    Checked check_version() const {
        const std::uint32_t version = file_.version_;
        if (version == 2 || version == 3) return {};
        const bool swapped = version != 0 && (version & 0xFFFF) == 0;
        return std::unexpected(Error::unsupported(
            swapped ? std::string("big-endian GGUF files are not supported")
                    : fmt::format("GGUF version {} is not supported, only 2 and 3", version),
            "header"));
    }

    Checked check_count(std::uint64_t count, std::uint64_t limit, std::uint64_t bytes_min,
                        std::string_view what) const {
        if (count > limit) {
            return corrupt(fmt::format("the file claims {} {}, more than {}", count, what, limit),
                           "header");
        }
        if (count * bytes_min > cursor_.remaining()) {
            return corrupt(fmt::format("the file claims {} {}, but has only {} bytes left for them",
                                       count, what, cursor_.remaining()),
                           "header");
        }
        return {};
    }

    Checked read_metadata() {
        if (Checked fits = check_count(value_count_, limits::kGgufMetadataEntries, kValueBytesMin,
                                       "metadata entries");
            !fits) {
            return fits;
        }
        file_.values_.reserve(value_count_);
        for (std::uint64_t i = 0; i < value_count_; ++i) {
            const std::string_view key = cursor_.read_string(limits::kGgufNameBytes);
            if (cursor_.failed()) return truncated(fmt::format("metadata entry {}", i));
            Result<GgufFile::Value> value = read_value(key);
            if (!value) return std::unexpected(value.error());
            file_.values_.push_back(*value);
        }
        auto order = index_by_name(file_.values_, &GgufFile::Value::key, "metadata");
        if (!order) return std::unexpected(order.error());
        file_.values_by_key_ = *std::move(order);
        return {};
    }

    Result<GgufFile::Value> read_value(std::string_view key) {
        const std::string place = fmt::format("metadata {}", printable(key));
        GgufFile::Value value;
        value.key = key;
        const std::size_t start = cursor_.offset();
        value.type = cursor_.read<std::uint32_t>();
        value.element_type = value.type;
        if (value.type == static_cast<std::uint32_t>(ValueType::kArray)) {
            value.element_type = cursor_.read<std::uint32_t>();
            value.count = cursor_.read<std::uint64_t>();
            if (value.count > limits::kGgufArrayEntries) {
                return corrupt(fmt::format("the array claims {} entries, more than {}", value.count,
                                           limits::kGgufArrayEntries),
                               place);
            }
        }
        if (cursor_.failed()) return truncated(place);

        const std::size_t payload = cursor_.offset();
        if (Checked taken = take_elements(value, place); !taken) {
            return std::unexpected(taken.error());
        }
        value.raw = file_.bytes_.subspan(start, cursor_.offset() - start);
        value.payload = file_.bytes_.subspan(payload, cursor_.offset() - payload);
        if (!bools_are_clean(value)) return corrupt("a bool is neither 0 nor 1", place);
        return value;
    }

    Checked take_elements(const GgufFile::Value& value, const std::string& place) {
        if (value.element_type == static_cast<std::uint32_t>(ValueType::kArray)) {
            return std::unexpected(Error::unsupported("arrays of arrays are not supported", place));
        }
        const std::optional<std::uint32_t> bytes = value_bytes(value.element_type);
        if (!bytes) {
            return corrupt(fmt::format("{} is not a type of value", value.element_type), place);
        }
        if (value.element_type == static_cast<std::uint32_t>(ValueType::kString)) {
            for (std::uint64_t i = 0; i < value.count && !cursor_.failed(); ++i) {
                cursor_.read_string(limits::kGgufStringBytes);
            }
        } else {
            cursor_.take(value.count * *bytes);
        }
        if (cursor_.failed()) return truncated(place);
        return {};
    }

    static bool bools_are_clean(const GgufFile::Value& value) {
        return value.element_type != static_cast<std::uint32_t>(ValueType::kBool) ||
               std::ranges::all_of(value.payload, [](std::byte b) { return b <= std::byte{1}; });
    }

    Checked read_alignment() {
        constexpr std::string_view kKey = "general.alignment";
        file_.alignment_ = kDefaultAlignment;
        if (!file_.contains(kKey)) return {};
        const std::uint64_t alignment = file_.find_uint(kKey).value_or(0);
        if (!std::has_single_bit(alignment) || alignment < kSmallestAlignment ||
            alignment > limits::kGgufAlignment) {
            return corrupt(
                fmt::format("the alignment is {}, but must be a power of two from {} to {}",
                            alignment, kSmallestAlignment, limits::kGgufAlignment),
                fmt::format("metadata {}", kKey));
        }
        file_.alignment_ = alignment;
        return {};
    }

    Checked read_directory() {
        if (Checked fits =
                check_count(tensor_count_, limits::kGgufTensors, kTensorBytesMin, "tensors");
            !fits) {
            return fits;
        }
        file_.tensors_.reserve(tensor_count_);
        offsets_.reserve(tensor_count_);
        for (std::uint64_t i = 0; i < tensor_count_; ++i) {
            if (Checked entry = read_tensor(i); !entry) return entry;
        }
        file_.header_bytes_ = cursor_.offset();
        auto order = index_by_name(file_.tensors_, &TensorView::name, "tensor");
        if (!order) return std::unexpected(order.error());
        file_.tensors_by_name_ = *std::move(order);
        return {};
    }

    Checked read_tensor(std::uint64_t number) {
        TensorView tensor;
        tensor.name = cursor_.read_string(limits::kGgufNameBytes);
        const auto dimensions = cursor_.read<std::uint32_t>();
        if (cursor_.failed()) return truncated(fmt::format("tensor {}", number));
        if (dimensions == 0 || dimensions > kDimensionsMax) {
            return corrupt(fmt::format("the tensor has {} dimensions, but must have 1 to {}",
                                       dimensions, kDimensionsMax),
                           tensor_place(tensor));
        }
        tensor.shape.resize(dimensions);
        for (std::uint64_t& size : tensor.shape) size = cursor_.read<std::uint64_t>();
        tensor.raw_type = cursor_.read<std::uint32_t>();
        tensor.type = data_type(tensor.raw_type);
        offsets_.push_back(cursor_.read<std::uint64_t>());
        if (cursor_.failed()) return truncated(tensor_place(tensor));
        file_.tensors_.push_back(std::move(tensor));
        return {};
    }

    Checked place_tensors() {
        const std::uint64_t padding = file_.header_bytes_ % file_.alignment_;
        data_start_ = file_.header_bytes_ + (padding == 0 ? 0 : file_.alignment_ - padding);
        for (std::size_t i = 0; i < file_.tensors_.size(); ++i) {
            if (Checked placed = place_tensor(file_.tensors_[i], offsets_[i]); !placed) {
                return placed;
            }
        }
        return {};
    }

    Checked place_tensor(TensorView& tensor, std::uint64_t offset) {
        Result<std::uint64_t> size = data_bytes(tensor);
        if (!size) return std::unexpected(size.error());
        if (offset % file_.alignment_ != 0) {
            return corrupt(fmt::format("its offset {} is not a multiple of the alignment {}",
                                       offset, file_.alignment_),
                           tensor_place(tensor));
        }
        const std::uint64_t end = file_.bytes_.size();
        const std::uint64_t available = end > data_start_ ? end - data_start_ : 0;
        if (end < data_start_ || offset > available || *size > available - offset) {
            return corrupt(fmt::format("its data ({} bytes at offset {}) goes past the end of the "
                                       "file, which has {} bytes of tensor data",
                                       *size, offset, available),
                           tensor_place(tensor));
        }
        tensor.data = file_.bytes_.subspan(data_start_ + offset, *size);
        return {};
    }

    /// 0 if the type's layout isn't known.
    static Result<std::uint64_t> data_bytes(const TensorView& tensor) {
        std::uint64_t elements = 1;
        for (const std::uint64_t size : tensor.shape) {
            if (size == 0) return corrupt("a dimension is zero", tensor_place(tensor));
            if (__builtin_mul_overflow(elements, size, &elements)) {
                return corrupt("the product of its dimensions overflows", tensor_place(tensor));
            }
        }
        const std::optional<BlockLayout> layout = block_layout(tensor.raw_type);
        if (!layout) return 0;
        if (tensor.shape.front() % layout->elements != 0) {
            return corrupt(fmt::format("a row has {} elements, but {} needs a multiple of {}",
                                       tensor.shape.front(), tensor_type_name(tensor.raw_type),
                                       layout->elements),
                           tensor_place(tensor));
        }
        std::uint64_t bytes = 0;
        if (__builtin_mul_overflow(elements / layout->elements, layout->bytes, &bytes)) {
            return corrupt("its size in bytes overflows", tensor_place(tensor));
        }
        return bytes;
    }

    Checked check_overlaps() {
        std::vector<const TensorView*> by_address;
        for (const TensorView& tensor : file_.tensors_) {
            if (!tensor.data.empty()) by_address.push_back(&tensor);
        }
        std::ranges::sort(by_address, {}, [](const TensorView* t) { return t->data.data(); });
        for (std::size_t i = 1; i < by_address.size(); ++i) {
            const TensorView& before = *by_address[i - 1];
            const TensorView& after = *by_address[i];
            if (before.data.data() + before.data.size() > after.data.data()) {
                return corrupt(fmt::format("its data overlaps that of {}", printable(before.name)),
                               tensor_place(after));
            }
        }
        return {};
    }

    static std::string tensor_place(const TensorView& tensor) {
        return fmt::format("tensor {}", printable(tensor.name));
    }

    std::unexpected<Error> truncated(std::string place) const {
        return corrupt(fmt::format("the file ends, or a length is too large, near byte {} of {}",
                                   cursor_.offset(), file_.bytes_.size()),
                       std::move(place));
    }

    ByteCursor cursor_;
    GgufFile file_;
    std::uint64_t tensor_count_ = 0;
    std::uint64_t value_count_ = 0;
    std::uint64_t data_start_ = 0;
    std::vector<std::uint64_t> offsets_;  ///< Of each tensor, from data_start_.
};

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes) {
    return GgufParser(bytes).parse();
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
    Result<MappedFile> mapped = MappedFile::open(path);
    if (!mapped) return std::unexpected(mapped.error());
    Result<GgufFile> file = parse(mapped->bytes());
    if (!file) {
        const Error& error = file.error();
        return std::unexpected(Error(error.code(), error.message(),
                                     fmt::format("{}: {}", path.string(), error.place())));
    }
    file->file_ = *std::move(mapped);
    return file;
}

}  // namespace sluice::checkpoint

#pragma once

// A view of something callable, as a span is one of an array: two words, no allocation, valid as long
// as what it was made from. For parameters only.

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace sluice {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
public:
    template <class Callable>
        requires(!std::same_as<std::remove_cvref_t<Callable>, FunctionRef> &&
                 std::is_invocable_r_v<Result, Callable&, Arguments...>)
    // NOLINTNEXTLINE(google-explicit-constructor): lambdas are passed as they are.
    FunctionRef(Callable&& callable)
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
          call_([](void* object, Arguments... arguments) -> Result {
              return std::invoke(*static_cast<std::remove_reference_t<Callable>*>(object),
                                 std::forward<Arguments>(arguments)...);
          }) {}

    Result operator()(Arguments... arguments) const {
        return call_(object_, std::forward<Arguments>(arguments)...);
    }

private:
    void* object_;
    Result (*call_)(void* object, Arguments... arguments);
};

}  // namespace sluice

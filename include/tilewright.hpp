/*
 * Tilewright in C++: a thin layer over tilewright.h, with exceptions for statuses and values that free themselves.
 *
 *   tilewright::Value artifact = tilewright::open("model.tw");
 *   tilewright::Value session = artifact.call("session", "fsim");
 *   std::vector<tilewright::Value> outputs = session.call("run", tilewright::tensor(pixels, {1, 3, 224, 224})).items();
 *
 * C++17 or later.
 */
#ifndef TILEWRIGHT_HPP
#define TILEWRIGHT_HPP

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright.h"

namespace tilewright {

/* A call that ended in another status than TW_OK. */
class Error : public std::runtime_error {
 public:
  Error(tw_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  tw_status status() const { return status_; }

 private:
  tw_status status_;
};

/* Throws the error of a call that failed. */
inline void check(tw_status status) {
  if (status != TW_OK) throw Error(status, tw_error());
}

/* The element type of T. */
template <typename T>
constexpr DLDataType dtype() {
  static_assert(std::is_arithmetic_v<T>, "tensors have numbers as elements");
  constexpr std::uint8_t code = std::is_same_v<T, bool> ? kDLBool
                                : std::is_floating_point_v<T> ? kDLFloat
                                : std::is_signed_v<T>         ? kDLInt
                                                              : kDLUInt;
  return DLDataType{code, 8 * sizeof(T), 1};
}

/* A value; it is freed with the last object that has it. */
class Value {
 public:
  Value() : Value(tw_value{TW_NONE, 0, {0}}) {}
  Value(std::int64_t number) : Value() {
    raw_.kind = TW_INTEGER;
    raw_.data.integer = number;
  }
  Value(int number) : Value(static_cast<std::int64_t>(number)) {}
  Value(bool truth) : Value(static_cast<std::int64_t>(truth)) {}
  Value(double number) : Value() {
    raw_.kind = TW_FLOAT;
    raw_.data.real = number;
  }
  Value(std::string_view text) : Value() { check(tw_string_new(text.data(), text.size(), &raw_)); }
  Value(const char *text) : Value(std::string_view(text)) {}
  Value(const std::string &text) : Value(std::string_view(text)) {}
  Value(const std::vector<Value> &items) : Value() {
    std::vector<tw_value> raw = raws(items);
    check(tw_list_new(raw.data(), raw.size(), &raw_));
  }
  Value(const std::map<std::string, Value> &items) : Value() {
    std::vector<const char *> names;
    std::vector<tw_value> raw;
    for (const auto &[name, item] : items) {
      names.push_back(name.c_str());
      raw.push_back(item.raw_);
    }
    check(tw_map_new(names.data(), raw.data(), raw.size(), &raw_));
  }
  Value(const Value &other) : Value() { check(tw_value_copy(other.raw_, &raw_)); }
  Value(Value &&other) noexcept : raw_(std::exchange(other.raw_, tw_value{TW_NONE, 0, {0}})) {}
  Value &operator=(Value other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Value() { tw_value_free(raw_); }

  /* Takes a value over from C. */
  static Value adopt(tw_value raw) { return Value(raw); }
  /* The value for C, which still belongs to this object. */
  const tw_value &raw() const { return raw_; }
  /* Hands the value to C. */
  tw_value release() { return std::exchange(raw_, tw_value{TW_NONE, 0, {0}}); }

  std::uint32_t kind() const { return raw_.kind; }
  bool is_none() const { return raw_.kind == TW_NONE; }

  std::int64_t integer() const { return expect(TW_INTEGER, "an integer"), raw_.data.integer; }
  double real() const { return expect(TW_FLOAT, "a float"), raw_.data.real; }
  /* A string, or bytes. */
  std::string string() const {
    const void *data;
    std::size_t bytes;
    check(tw_value_data(raw_, &data, &bytes));
    return std::string(static_cast<const char *>(data), bytes);
  }

  /* A list's items. */
  std::vector<Value> items() const {
    std::vector<Value> all(length());
    for (std::size_t i = 0; i < all.size(); i++) check(tw_value_item(raw_, i, &all[i].raw_));
    return all;
  }
  std::size_t length() const {
    std::size_t length;
    check(tw_value_length(raw_, &length));
    return length;
  }
  /* A map's value of that name. */
  Value operator[](const char *name) const {
    Value item;
    check(tw_value_named(raw_, name, &item.raw_));
    return item;
  }

  /* A tensor's shape. */
  std::vector<std::int64_t> shape() const {
    std::size_t axes = 0;
    view(nullptr, &axes);
    std::vector<std::int64_t> lengths(axes);
    view(lengths.data(), &axes);
    return lengths;
  }
  /* A tensor's elements, which must have this type. */
  template <typename T>
  std::vector<T> elements() const {
    std::size_t axes = 0;
    View found = view(nullptr, &axes);
    DLDataType wanted = dtype<T>();
    if (found.dtype.code != wanted.code || found.dtype.bits != wanted.bits) {
      throw Error(TW_INVALID_ARGUMENT, "the tensor's elements have another type");
    }
    std::vector<T> all(found.bytes / sizeof(T));
    std::memcpy(all.data(), found.data, found.bytes);
    return all;
  }

  /* Calls a function, or a module's function of that name. */
  template <typename... Args>
  Value operator()(Args &&...args) const {
    return call_all({Value(std::forward<Args>(args))...});
  }
  template <typename... Args>
  Value call(const char *name, Args &&...args) const {
    Value function;
    check(tw_module_function(raw_, name, &function.raw_));
    return function.call_all({Value(std::forward<Args>(args))...});
  }
  Value call_all(const std::vector<Value> &args) const {
    std::vector<tw_value> raw = raws(args);
    Value result;
    check(tw_function_call(raw_, raw.data(), raw.size(), &result.raw_));
    return result;
  }

 private:
  struct View {
    DLDataType dtype;
    const void *data;
    std::size_t bytes;
  };

  explicit Value(tw_value raw) : raw_(raw) {}

  View view(std::int64_t *shape, std::size_t *axes) const {
    View found;
    check(tw_tensor_view(raw_, &found.dtype, shape, axes, &found.data, &found.bytes));
    return found;
  }
  void expect(std::uint32_t kind, const char *wanted) const {
    if (raw_.kind != kind) throw Error(TW_INVALID_ARGUMENT, std::string("the value is not ") + wanted);
  }
  static std::vector<tw_value> raws(const std::vector<Value> &items) {
    std::vector<tw_value> raw;
    raw.reserve(items.size());
    for (const Value &item : items) raw.push_back(item.raw_);
    return raw;
  }

  tw_value raw_;
};

/* A tensor with a copy of the elements. */
template <typename T>
Value tensor(const std::vector<T> &elements, const std::vector<std::int64_t> &shape) {
  std::int64_t count = 1;
  for (std::int64_t axis : shape) count *= axis;
  if (count < 0 || static_cast<std::size_t>(count) != elements.size()) {
    throw Error(TW_INVALID_ARGUMENT, "the elements do not fill the shape");
  }
  tw_value raw;
  check(tw_tensor_new(elements.data(), dtype<T>(), shape.data(), shape.size(), &raw));
  return Value::adopt(raw);
}

/* The artifact in a file, a module. */
inline Value open(const std::string &path) {
  tw_value raw;
  check(tw_artifact_open(path.c_str(), &raw));
  return Value::adopt(raw);
}

/* The artifact in a file, with its parameters in another one. */
inline Value open(const std::string &path, const std::string &parameters) {
  tw_value raw;
  check(tw_artifact_open_with(path.c_str(), parameters.c_str(), &raw));
  return Value::adopt(raw);
}

/* A device that sessions can share; the configuration is a preset's name or TOML. */
inline Value device(const std::string &name, const std::string &config) {
  tw_value raw;
  check(tw_device_open(name.c_str(), config.c_str(), &raw));
  return Value::adopt(raw);
}

/* A function in C++ that models, C and other languages can call. What it throws is the error of the call. */
using Callable = std::function<Value(const std::vector<Value> &)>;

inline Value function(const std::string &name, Callable body) {
  auto call = [](void *context, const tw_value *args, std::size_t count, tw_value *result) -> tw_status {
    try {
      std::vector<Value> copies;
      for (std::size_t i = 0; i < count; i++) {
        tw_value copy;
        check(tw_value_copy(args[i], &copy));
        copies.push_back(Value::adopt(copy));
      }
      *result = (*static_cast<Callable *>(context))(copies).release();
      return TW_OK;
    } catch (const std::exception &error) {
      tw_set_error(error.what());
    } catch (...) {
      tw_set_error("it threw something that is no std::exception");
    }
    return TW_FAILED;
  };
  auto drop = [](void *context) { delete static_cast<Callable *>(context); };
  auto context = std::make_unique<Callable>(std::move(body));
  tw_value raw;
  check(tw_function_new(name.c_str(), call, context.get(), drop, &raw));
  context.release();
  return Value::adopt(raw);
}

/* Registers a function under its name. */
inline void register_function(const Value &function) { check(tw_function_register(function.raw())); }

}  // namespace tilewright

#endif

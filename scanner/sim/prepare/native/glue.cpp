// Entry points into a release's own code, compiled against that release's own headers, so that no
// object's layout is written down by hand.
#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <sstream>

// A tree of values in prefix order: a list is followed by its `integer` elements.
struct Value {
  int64_t kind;
  int64_t integer;
  double real;
  void* pointer;
};

enum Kind : int64_t {
  NONE,
  TENSOR,
  INT,
  FLOAT,
  BOOL,
  COMPLEX,  // real, and the bits of the imaginary part in `integer`
  STRING,   // `pointer`, `integer` bytes
  LIST,
  DEVICE,  // type in `integer`
  DEFAULT,
  OTHER,
};

struct Layout {
  int64_t dtype, device, ndim, offset, wrapped, conj, neg;
  const int64_t* sizes;
  const int64_t* strides;
};

struct Report {
  char* kind;
  char* text;
  int64_t room;
};

// Served from outside.
extern "C" {
void opscan_enter(const char* name, const char* overload);
void opscan_leave();
void opscan_warning(const char* text);
}

namespace {

using Impl = c10::TensorImpl;
using Pointer = c10::intrusive_ptr<Impl, c10::UndefinedTensorImpl>;

void put(char* to, int64_t room, const std::string& text) {
  size_t size = std::min<size_t>(text.size(), room - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

int64_t fail(const Report& report, const char* kind, const std::string& text) {
  std::strcpy(report.kind, kind);
  put(report.text, report.room, text);
  return -1;
}

template <typename Body>
int64_t guarded(const Report& report, Body body) {
  try {
    return body();
  } catch (const c10::NotImplementedError& e) {
    return fail(report, "NotImplementedError", e.what_without_backtrace());
  } catch (const c10::IndexError& e) {
    return fail(report, "IndexError", e.what_without_backtrace());
  } catch (const c10::ValueError& e) {
    return fail(report, "ValueError", e.what_without_backtrace());
  } catch (const c10::TypeError& e) {
    return fail(report, "TypeError", e.what_without_backtrace());
  } catch (const c10::Error& e) {
    return fail(report, "RuntimeError", e.what_without_backtrace());
  } catch (const std::exception& e) {
    return fail(report, "RuntimeError", e.what());
  } catch (...) {
    return fail(report, "", "an exception of unknown type");
  }
}

at::Tensor borrow(void* pointer) {
  if (!pointer) return at::Tensor();
  return at::Tensor(Pointer::reclaim_copy(static_cast<Impl*>(pointer)));
}

c10::complex<double> complex_of(const Value& value) {
  double imaginary;
  std::memcpy(&imaginary, &value.integer, sizeof imaginary);
  return {value.real, imaginary};
}

at::Scalar scalar_of(const Value& value) {
  switch (value.kind) {
    case FLOAT:
      return at::Scalar(value.real);
    case BOOL:
      return at::Scalar(value.integer != 0);
    case COMPLEX:
      return at::Scalar(complex_of(value));
    default:
      return at::Scalar(value.integer);
  }
}

bool is_number(const Value& value) {
  return value.kind == INT || value.kind == FLOAT || value.kind == BOOL || value.kind == COMPLEX;
}

at::Tensor wrapped(const at::Scalar& scalar) {
  at::Tensor made = c10::scalar_to_tensor(scalar);
  made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

c10::IValue leaf(const Value& value, c10::TypeKind type) {
  if (type == c10::TypeKind::TensorType && is_number(value)) return wrapped(scalar_of(value));
  switch (value.kind) {
    case TENSOR:
      return c10::IValue(borrow(value.pointer));
    case INT:
      if (type == c10::TypeKind::FloatType) return c10::IValue(double(value.integer));
      if (type == c10::TypeKind::BoolType) return c10::IValue(value.integer != 0);
      return c10::IValue(value.integer);
    case FLOAT:
      return c10::IValue(value.real);
    case BOOL:
      if (type == c10::TypeKind::IntType) return c10::IValue(int64_t(value.integer));
      return c10::IValue(value.integer != 0);
    case COMPLEX:
      return c10::IValue(complex_of(value));
    case STRING:
      return c10::IValue(std::string(static_cast<char*>(value.pointer), value.integer));
    case DEVICE: {
      auto kind = static_cast<c10::DeviceType>(value.integer);
      return c10::IValue(c10::Device(kind, kind == c10::DeviceType::CPU ? -1 : 0));
    }
    default:
      return c10::IValue();
  }
}

// Consumes one value, with what belongs to it, as the schema's type asks.
c10::IValue convert(const Value*& at, c10::TypePtr type, int32_t repeat) {
  const Value& value = *at++;
  if (type->kind() == c10::TypeKind::OptionalType) {
    if (value.kind == NONE) return c10::IValue();
    type = type->castRaw<c10::OptionalType>()->getElementType();
  }
  if (type->kind() != c10::TypeKind::ListType) return leaf(value, type->kind());
  auto element = type->castRaw<c10::ListType>()->getElementType();
  c10::impl::GenericList list(element);
  if (value.kind == LIST) {
    for (int64_t i = 0; i < value.integer; i++) list.push_back(convert(at, element, 0));
  } else {
    for (int32_t i = 0; i < std::max(repeat, 1); i++) list.push_back(leaf(value, element->kind()));
  }
  return c10::IValue(list);
}

struct Writer {
  Value* to;
  int64_t room;
  int64_t count = 0;

  Value& next() {
    TORCH_CHECK(count < room, "too many results");
    Value& value = to[count++];
    value = Value{NONE, 0, 0, nullptr};
    return value;
  }

  void tensor(const at::Tensor& result) {
    Value& value = next();
    if (!result.defined()) return;
    value.kind = TENSOR;
    at::Tensor kept = result;
    value.pointer = kept.unsafeReleaseTensorImpl();
  }

  void list(const c10::IValue& result) {
    auto elements = result.toList();
    Value& value = next();
    value.kind = LIST;
    value.integer = static_cast<int64_t>(elements.size());
    for (size_t i = 0; i < elements.size(); i++) any(elements.get(i));
  }

  void any(const c10::IValue& result) {
    if (result.isTensor()) return tensor(result.toTensor());
    if (result.isList()) return list(result);
    Value& value = next();
    if (result.isInt()) {
      value.kind = INT;
      value.integer = result.toInt();
    } else if (result.isDouble()) {
      value.kind = FLOAT;
      value.real = result.toDouble();
    } else if (result.isBool()) {
      value.kind = BOOL;
      value.integer = result.toBool();
    } else if (result.isComplexDouble()) {
      value.kind = COMPLEX;
      value.real = result.toComplexDouble().real();
      double imaginary = result.toComplexDouble().imag();
      std::memcpy(&value.integer, &imaginary, sizeof imaginary);
    } else if (!result.isNone()) {
      value.kind = OTHER;
    }
  }
};

c10::Allocator* allocator(c10::DeviceType device) {
  if (device == c10::DeviceType::CPU) return c10::GetAllocator(device);
  return at::detail::getMPSHooks().getMPSDeviceAllocator();
}

void describe(Impl* impl, const Layout& layout) {
  impl->set_sizes_and_strides(c10::IntArrayRef(layout.sizes, layout.ndim),
                              c10::IntArrayRef(layout.strides, layout.ndim), layout.offset);
  if (layout.wrapped) impl->set_wrapped_number(true);
  if (layout.conj) impl->_set_conj(true);
  if (layout.neg) impl->_set_neg(true);
}

int64_t tensor_on(c10::Storage storage, const Layout& layout, Value* out) {
  auto device = static_cast<c10::DeviceType>(layout.device);
  auto key = device == c10::DeviceType::CPU ? c10::DispatchKey::CPU : c10::DispatchKey::MPS;
  auto impl = c10::make_intrusive<Impl, c10::UndefinedTensorImpl>(
      std::move(storage), c10::DispatchKeySet(key),
      c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(layout.dtype)));
  describe(impl.get(), layout);
  *out = Value{TENSOR, 0, 0, impl.release()};
  return 0;
}

std::unique_ptr<at::ObserverContext> on_enter(const at::RecordFunction& call) {
  auto name = call.operator_name();
  if (name) {
    opscan_enter(name->name.c_str(), name->overload_name.c_str());
  } else {
    opscan_enter(call.name(), "");
  }
  return nullptr;
}

void on_leave(const at::RecordFunction&, at::ObserverContext*) { opscan_leave(); }

struct Warnings : c10::WarningHandler {
  void process(const c10::Warning& warning) override { opscan_warning(warning.msg().c_str()); }
};

}  // namespace

extern "C" {

void opscan_begin() {
  static Warnings warnings;
  c10::WarningUtils::set_warning_handler(&warnings);
  at::addGlobalCallback(
      at::RecordFunctionCallback(on_enter, on_leave).scopes({at::RecordScope::FUNCTION}));
}

// A tensor with a storage of its own of `nbytes` bytes.
int64_t opscan_tensor(const Layout* layout, int64_t nbytes, Value* out, const Report* report) {
  return guarded(*report, [&] {
    auto* source = allocator(static_cast<c10::DeviceType>(layout->device));
    c10::Storage storage(c10::Storage::use_byte_size_t(), nbytes, source->allocate(nbytes), source,
                         true);
    return tensor_on(std::move(storage), *layout, out);
  });
}

// A tensor on the storage of another one.
int64_t opscan_alias(Impl* other, const Layout* layout, Value* out, const Report* report) {
  return guarded(*report, [&] { return tensor_on(other->storage(), *layout, out); });
}

void opscan_release(Impl* impl) { Pointer::reclaim(impl); }

// dtype, device, offset, storage bytes, storage pointer, conj, neg, strided, ndim, sizes, strides
int64_t opscan_describe(Impl* impl, int64_t* out, const Report* report) {
  return guarded(*report, [&]() -> int64_t {
    at::Tensor tensor = borrow(impl);
    bool strided = tensor.layout() == c10::kStrided && impl->has_storage();
    out[0] = static_cast<int64_t>(c10::typeMetaToScalarType(impl->dtype()));
    out[1] = static_cast<int64_t>(impl->device_type());
    out[2] = strided ? impl->storage_offset() : 0;
    out[3] = strided ? static_cast<int64_t>(impl->storage().nbytes()) : 0;
    out[4] = strided ? reinterpret_cast<int64_t>(impl->storage().data()) : 0;
    out[5] = tensor.is_conj();
    out[6] = tensor.is_neg();
    out[7] = strided;
    out[8] = impl->dim();
    for (int64_t i = 0; i < impl->dim(); i++) {
      out[9 + i] = impl->size(i);
      if (strided) out[9 + impl->dim() + i] = impl->stride(i);
    }
    return 0;
  });
}

// One line an argument: name, type, whether it is keyword only, whether it has a default.
int64_t opscan_schema(const char* name, const char* overload, const Report* report) {
  return guarded(*report, [&]() -> int64_t {
    auto op = c10::Dispatcher::singleton().findSchema({name, overload});
    if (!op) return fail(*report, "", "no such operator");
    std::ostringstream text;
    for (const auto& argument : op->schema().arguments())
      text << argument.name() << '\t' << argument.real_type()->str() << '\t'
           << argument.kwarg_only() << '\t' << argument.default_value().has_value() << '\n';
    put(report->text, report->room, text.str());
    return 0;
  });
}

// Calls an operator through the dispatcher with a value for each argument of its schema.
int64_t opscan_call(const char* name, const char* overload, const Value* arguments, Value* out,
                    int64_t room, const Report* report) {
  return guarded(*report, [&]() -> int64_t {
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
    torch::jit::Stack stack;
    for (const auto& argument : op.schema().arguments()) {
      if (arguments->kind == DEFAULT) {
        arguments++;
        const auto& given = argument.default_value();
        stack.push_back(given.has_value() ? *given : c10::IValue());
      } else {
        stack.push_back(convert(arguments, argument.type(), argument.N().value_or(0)));
      }
    }
    op.callBoxed(stack);
    Writer writer{out, room};
    for (const auto& result : stack) writer.any(result);
    return writer.count;
  });
}
}

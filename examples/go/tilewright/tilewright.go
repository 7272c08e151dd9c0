// Package tilewright runs compiled models through the C interface of Tilewright (include/tilewright.h).
//
// It needs the headers and libraries of `make clib`: set CGO_CFLAGS to -I and CGO_LDFLAGS to -L with their folders.
package tilewright

/*
#cgo LDFLAGS: -ltilewright_sim
#include <stdlib.h>
#include "tilewright.h"

static int64_t tw_integer(tw_value value) { return value.data.integer; }
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// Tensor is an array of elements in row-major order.
type Tensor struct {
	// DType is the element type: i8, u8, f32 and so on.
	DType string
	// Shape has the lengths of the axes, slowest first.
	Shape []int64
	// Data has the elements, little endian.
	Data []byte
}

// Description says what an input or output is.
type Description struct {
	Name  string
	DType string
	// Shape has -1 where the model leaves a length open.
	Shape []int64
}

// Elements is the number of elements of the given shape; -1 if a length is open.
func (d Description) Elements() int64 {
	count := int64(1)
	for _, length := range d.Shape {
		if length < 0 {
			return -1
		}
		count *= length
	}
	return count
}

// Bytes is the size of one element of the type, in bytes.
func Bytes(dtype string) int64 {
	if dtype == "bool" {
		return 1
	}
	bits := int64(0)
	fmt.Sscanf(strings.TrimLeft(dtype, "iuf"), "%d", &bits)
	return bits / 8
}

// Model is a compiled model with a session on a device. One goroutine at a time may run it.
type Model struct {
	session C.tw_value
	// Inputs and Outputs are in the model's order.
	Inputs, Outputs []Description
}

// call runs a function of the library. Its error's text belongs to the thread, so the goroutine stays on it.
func call(body func() C.tw_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if body() != C.TW_OK {
		return errors.New(C.GoString(C.tw_error()))
	}
	return nil
}

func free(value C.tw_value) { C.tw_value_free(value) }

// Open opens an artifact of `tilewright compile` and prepares it on a device by its name: fsim, csim, serial:PATH or
// others. Close frees it.
func Open(path, device string) (*Model, error) {
	if C.tw_abi_version() != C.TW_ABI_VERSION {
		return nil, fmt.Errorf("the library has version %d of the interface, this program %d", C.tw_abi_version(), C.TW_ABI_VERSION)
	}
	place, name := C.CString(path), C.CString(device)
	defer C.free(unsafe.Pointer(place))
	defer C.free(unsafe.Pointer(name))
	var artifact, text C.tw_value
	if err := call(func() C.tw_status { return C.tw_artifact_open(place, &artifact) }); err != nil {
		return nil, err
	}
	defer free(artifact)
	if err := call(func() C.tw_status { return C.tw_string_new(name, C.size_t(len(device)), &text) }); err != nil {
		return nil, err
	}
	defer free(text)
	model := &Model{}
	if err := call(func() C.tw_status { return C.tw_session_open(artifact, text, &model.session) }); err != nil {
		return nil, err
	}
	var err error
	if model.Inputs, err = model.describe("inputs"); err == nil {
		model.Outputs, err = model.describe("outputs")
	}
	if err != nil {
		model.Close()
		return nil, err
	}
	return model, nil
}

// Close frees the model.
func (m *Model) Close() { free(m.session) }

// Run runs the model once on inputs in its order, and returns its outputs.
func (m *Model) Run(inputs ...Tensor) ([]Tensor, error) {
	arguments := make([]C.tw_value, len(inputs))
	for i, tensor := range inputs {
		value, err := put(tensor)
		if err != nil {
			return nil, err
		}
		defer free(value)
		arguments[i] = value
	}
	list, err := m.invoke("run", arguments)
	if err != nil {
		return nil, err
	}
	defer free(list)
	var outputs []Tensor
	err = each(list, func(item C.tw_value) error {
		tensor, err := take(item)
		outputs = append(outputs, tensor)
		return err
	})
	return outputs, err
}

// invoke calls a function of the session; the caller frees the result.
func (m *Model) invoke(name string, arguments []C.tw_value) (C.tw_value, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var function, result C.tw_value
	if err := call(func() C.tw_status { return C.tw_module_function(m.session, text, &function) }); err != nil {
		return result, err
	}
	defer free(function)
	var first *C.tw_value
	if len(arguments) > 0 {
		first = &arguments[0]
	}
	err := call(func() C.tw_status { return C.tw_function_call(function, first, C.size_t(len(arguments)), &result) })
	return result, err
}

func (m *Model) describe(what string) ([]Description, error) {
	list, err := m.invoke(what, nil)
	if err != nil {
		return nil, err
	}
	defer free(list)
	var found []Description
	err = each(list, func(item C.tw_value) error {
		var description Description
		err := named(item, "name", func(value C.tw_value) (err error) {
			description.Name, err = text(value)
			return err
		})
		if err == nil {
			err = named(item, "dtype", func(value C.tw_value) (err error) {
				description.DType, err = text(value)
				return err
			})
		}
		if err == nil {
			err = named(item, "shape", func(value C.tw_value) error {
				return each(value, func(length C.tw_value) error {
					// An open length is a name or no value.
					size := int64(-1)
					if length.kind == C.TW_INTEGER {
						size = int64(C.tw_integer(length))
					}
					description.Shape = append(description.Shape, size)
					return nil
				})
			})
		}
		found = append(found, description)
		return err
	})
	return found, err
}

// each calls body with each item of a list.
func each(list C.tw_value, body func(C.tw_value) error) error {
	var length C.size_t
	if err := call(func() C.tw_status { return C.tw_value_length(list, &length) }); err != nil {
		return err
	}
	for i := C.size_t(0); i < length; i++ {
		var item C.tw_value
		if err := call(func() C.tw_status { return C.tw_value_item(list, i, &item) }); err != nil {
			return err
		}
		err := body(item)
		free(item)
		if err != nil {
			return err
		}
	}
	return nil
}

// named calls body with an item of a map.
func named(from C.tw_value, name string, body func(C.tw_value) error) error {
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	var item C.tw_value
	if err := call(func() C.tw_status { return C.tw_value_named(from, key, &item) }); err != nil {
		return err
	}
	defer free(item)
	return body(item)
}

func text(value C.tw_value) (string, error) {
	var data unsafe.Pointer
	var length C.size_t
	err := call(func() C.tw_status { return C.tw_value_data(value, &data, &length) })
	if err != nil {
		return "", err
	}
	return C.GoStringN((*C.char)(data), C.int(length)), nil
}

// put makes a tensor of the library, which copies the elements.
func put(tensor Tensor) (C.tw_value, error) {
	var value C.tw_value
	dtype := C.DLDataType{bits: C.uint8_t(8 * Bytes(tensor.DType)), lanes: 1}
	switch {
	case tensor.DType == "bool":
		dtype.code = C.kDLBool
	case strings.HasPrefix(tensor.DType, "f"):
		dtype.code = C.kDLFloat
	case strings.HasPrefix(tensor.DType, "u"):
		dtype.code = C.kDLUInt
	default:
		dtype.code = C.kDLInt
	}
	elements := int64(1)
	for _, length := range tensor.Shape {
		elements *= length
	}
	// The library reads as many bytes as the shape says.
	if bytes := elements * Bytes(tensor.DType); bytes != int64(len(tensor.Data)) {
		return value, fmt.Errorf("a tensor %s %v has %d bytes, but %d are given", tensor.DType, tensor.Shape, bytes, len(tensor.Data))
	}
	var data unsafe.Pointer
	if len(tensor.Data) > 0 {
		data = unsafe.Pointer(&tensor.Data[0])
	}
	var shape *C.int64_t
	if len(tensor.Shape) > 0 {
		shape = (*C.int64_t)(&tensor.Shape[0])
	}
	err := call(func() C.tw_status {
		return C.tw_tensor_new(data, dtype, shape, C.size_t(len(tensor.Shape)), &value)
	})
	return value, err
}

// take copies a tensor of the library.
func take(value C.tw_value) (Tensor, error) {
	const most = 32
	var dtype C.DLDataType
	var shape [most]C.int64_t
	var data unsafe.Pointer
	var bytes C.size_t
	axes := C.size_t(most)
	err := call(func() C.tw_status { return C.tw_tensor_view(value, &dtype, &shape[0], &axes, &data, &bytes) })
	if err != nil {
		return Tensor{}, err
	}
	if axes > most {
		return Tensor{}, fmt.Errorf("a tensor of %d axes; this package takes at most %d", axes, most)
	}
	kind := map[C.uint8_t]string{C.kDLInt: "i", C.kDLUInt: "u", C.kDLFloat: "f"}[dtype.code]
	name := fmt.Sprintf("%s%d", kind, dtype.bits)
	if dtype.code == C.kDLBool {
		name = "bool"
	}
	tensor := Tensor{DType: name, Data: C.GoBytes(data, C.int(bytes))}
	for _, length := range shape[:axes] {
		tensor.Shape = append(tensor.Shape, int64(length))
	}
	return tensor, nil
}

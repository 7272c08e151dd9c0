"""Values, functions and what crosses between Python and the library."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import tilewright as tw
from common import Case, lenet


def same(value: Any) -> Any:
    return value


class Values(Case):
    def setUp(self) -> None:
        tw.register("test.same", same)
        self.addCleanup(tw.unregister, "test.same")
        self.same = tw.function("test.same")

    def test_every_kind_comes_back(self) -> None:
        for value in (None, 3, -(2**63), 2**63 - 1, 2.5, float("inf"), "ä\0b", "", b"ab\0", [], [1, [2, None]], {}, {"a": {"b": [1.5]}}):
            back = self.same(value)
            self.assertEqual(back, value)
            self.assertIs(type(back), type(value))
        self.assertEqual(self.same(True), 1)
        self.assertEqual(self.same((1, 2)), [1, 2])
        self.assertEqual(self.same(bytearray(b"x")), b"x")
        self.assertTrue(np.isnan(self.same(float("nan"))))
        self.assertEqual(self.same(self.same)(4), 4)
        self.assertEqual(self.same(lenet()).model, lenet().model)
        self.assertIsInstance(self.same(lenet()), tw.Artifact)

    def test_every_element_type_comes_back_without_a_copy(self) -> None:
        names = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64"
        for name in names.split():
            for shape in ((), (3,), (2, 0), (2, 3, 4)):
                array = np.ones(shape, name)
                back = self.same(array)
                self.assertEqual((back.dtype, back.shape), (array.dtype, array.shape))
                np.testing.assert_array_equal(back, array)
                self.assertFalse(back.flags.writeable)
                if array.size:
                    self.assertTrue(np.shares_memory(back, array))

    def test_arrays_that_cannot_be_written_are_read(self) -> None:
        array = np.arange(4)
        array.flags.writeable = False
        np.testing.assert_array_equal(self.same(array), array)
        self.assertEqual(self.same(np.float32(3)).shape, ())

    def test_other_libraries_arrays_are_read(self) -> None:
        class Old:
            """An array of DLPack before version 1.0."""

            def __init__(self, array: Any) -> None:
                self.array = array

            def __dlpack__(self) -> Any:
                return self.array.__dlpack__()

            def __dlpack_device__(self) -> tuple[int, int]:
                return (1, 0)

        array = np.arange(6, dtype="f4").reshape(2, 3)
        back = self.same(Old(array))
        np.testing.assert_array_equal(back, array)
        self.assertTrue(np.shares_memory(back, array))

    def test_tensors_are_handed_to_other_libraries(self) -> None:
        array = np.arange(6, dtype="f4").reshape(2, 3)
        tensor = self.same(array).base
        self.assertIsInstance(tensor, tw.Tensor)
        self.assertEqual((tensor.dtype, tensor.shape), ("f32", (2, 3)))
        again = np.from_dlpack(tensor)
        np.testing.assert_array_equal(again, array)
        self.assertTrue(np.shares_memory(again, array))
        # Consumers of the old protocol, which cannot say that memory is not to be written, get a copy.
        self.assertIn("dltensor", repr(tensor.__dlpack__()))
        self.assertIn("dltensor_versioned", repr(tensor.__dlpack__(max_version=(1, 0))))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        self.refused(BufferError, "not copied to other devices", tensor.__dlpack__, dl_device=(2, 0))

    def test_memory_is_freed_when_nothing_refers_to_it(self) -> None:
        class Array(np.ndarray[Any, Any]):
            pass

        array = np.ones(5).view(Array)
        gone = weakref.ref(array)
        back = self.same(array)
        del array
        gc.collect()
        self.assertIsNotNone(gone())
        del back
        gc.collect()
        # The library drops its reference when Python next calls it.
        self.same(None)
        self.assertIsNone(gone())
        value = [object()]
        before = sys.getrefcount(value)
        for _ in range(10):
            with self.assertRaises(tw.InputError):
                self.same(value)
        self.assertEqual(sys.getrefcount(value), before)

    def test_what_is_no_value_is_refused(self) -> None:
        self.refused(tw.InputError, "a object is no value", self.same, object())
        self.refused(tw.InputError, "does not fit into 64 bits", self.same, 2**63)
        self.refused(tw.InputError, "the names of a map are strings, but 1 is none", self.same, {1: 2})
        self.refused(tw.InputError, "complex128 2", self.same, np.ones(2, "c16"))
        self.refused(tw.InputError, ">f4 2: its elements are big-endian", self.same, np.ones(2, ">f4"))
        self.refused(tw.InputError, "strides [2]; make it contiguous", self.same, np.ones(4)[::2])

        class Short:
            __array_interface__ = {**np.ones((2, 3)).__array_interface__, "strides": (8,)}

        self.refused(tw.InputError, "2 axes in shape, but 1 strides", self.same, Short())
        self.refused(tw.InputError, "object 1", self.same, np.array([object()]))
        endless: list[Any] = []
        endless.append(endless)
        self.refused(tw.InputError, "nested more than 64 deep", self.same, endless)


class Functions(Case):
    def test_a_function_is_registered_and_found(self) -> None:
        @tw.register("test.double")
        def double(x: float) -> float:
            return 2 * x

        self.addCleanup(tw.unregister, "test.double")
        self.assertEqual(double(2), 4)
        self.assertIn("test.double", tw.functions())
        found = tw.function("test.double")
        self.assertEqual((found.name, found(1.5)), ("test.double", 3.0))
        tw.register("test.double", lambda x: 3 * x)
        self.assertEqual(found(1), 2)
        self.assertEqual(tw.function("test.double")(1), 3)

    def test_what_a_function_raises_reaches_the_caller(self) -> None:
        def broken(*_: Any) -> None:
            raise ValueError("not today")

        tw.register("test.broken", broken)
        self.addCleanup(tw.unregister, "test.broken")
        error = self.refused(tw.CallError, "test.broken: ValueError: not today", tw.function("test.broken"))
        self.assertIsInstance(error.__cause__, ValueError)
        tw.register("test.odd", lambda: object())
        self.addCleanup(tw.unregister, "test.odd")
        self.refused(tw.CallError, "test.odd: InputError: a object is no value", tw.function("test.odd"))

    def test_an_interrupt_is_not_wrapped(self) -> None:
        def stop() -> None:
            raise KeyboardInterrupt

        tw.register("test.stop", stop)
        self.addCleanup(tw.unregister, "test.stop")
        with self.assertRaises(KeyboardInterrupt):
            tw.function("test.stop")()

    def test_unknown_names_are_told(self) -> None:
        self.refused(tw.NotFoundError, "no function is registered as nothing; there are: ", tw.function, "nothing")
        self.refused(tw.NotFoundError, "nothing", tw.unregister, "nothing")
        self.refused(TypeError, "cannot be called", tw.register, "test.number", 3)

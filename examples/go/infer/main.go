// Runs a compiled model: infer ARTIFACT [DEVICE]
//
// Reads the bytes of the model's only input from standard input, runs the model on DEVICE (fsim if none is named), and
// writes the bytes of its first output to standard output.
package main

import (
	"fmt"
	"io"
	"os"

	"example.org/tilewright/tilewright"
)

func infer(path, device string) error {
	model, err := tilewright.Open(path, device)
	if err != nil {
		return err
	}
	defer model.Close()
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	input := model.Inputs[0]
	outputs, err := model.Run(tilewright.Tensor{DType: input.DType, Shape: input.Shape, Data: data})
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(outputs[0].Data)
	return err
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: infer ARTIFACT [DEVICE]")
		os.Exit(2)
	}
	device := "fsim"
	if len(os.Args) > 2 {
		device = os.Args[2]
	}
	if err := infer(os.Args[1], device); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

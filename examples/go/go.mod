module example.org/tilewright

go 1.19

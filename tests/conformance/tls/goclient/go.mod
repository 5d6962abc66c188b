module goclient

go 1.21

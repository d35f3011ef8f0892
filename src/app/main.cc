#include <cstdio>

int main() { std::puts("sluice"); }

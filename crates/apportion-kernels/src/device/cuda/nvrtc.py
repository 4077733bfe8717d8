#!/usr/bin/env python3
"""Makes and inspects `kernels.ptx` with NVIDIA's compilers, as wheels have them:

    pip install nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.9.86
    nvrtc.py compile < OPTIONS          one line of build options a module; prints kernels.ptx
    nvrtc.py inspect ARCH < kernels.ptx assembles it for ARCH (sm_90); prints a line for each kernel:
                                        options, kernel, registers, bytes spilled, separated by tabs

Ends with code 3 where the wheel is not installed. Neither needs a card.
"""

import ctypes
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

# The oldest cards that the compiler knows, and the oldest PTX that serves them: the driver compiles it for all later.
TARGET = "compute_50"
VERSION = "5.0"
MARK = "//@ "


def wheel(package, path):
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        found = None
    for place in found.submodule_search_locations if found else []:
        if (pathlib.Path(place) / path).exists():
            return pathlib.Path(place) / path
    print(f"there is no {package}", file=sys.stderr)
    sys.exit(3)


class Compiler:
    def __init__(self, source):
        self.library = ctypes.CDLL(str(wheel("nvidia.cuda_nvrtc", "lib/libnvrtc.so.12")))
        self.source = source.encode()

    def text(self, program, size, get):
        length = ctypes.c_size_t()
        getattr(self.library, size)(program, ctypes.byref(length))
        text = ctypes.create_string_buffer(length.value)
        getattr(self.library, get)(program, text)
        return text.value.decode()

    def compile(self, options):
        words = [f"--gpu-architecture={TARGET}", "--device-as-default-execution-space", "--std=c++17", "-w"]
        words = [word.encode() for word in words + options.split()]
        program = ctypes.c_void_p()
        create = self.library.nvrtcCreateProgram
        if create(ctypes.byref(program), self.source, b"kernels.cu", 0, None, None) != 0:
            sys.exit("NVRTC does not start")
        array = (ctypes.c_char_p * len(words))(*words)
        if self.library.nvrtcCompileProgram(program, len(words), array) != 0:
            sys.exit(f"{options}: {self.text(program, 'nvrtcGetProgramLogSize', 'nvrtcGetProgramLog')}")
        ptx = self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return ptx


def compile_all():
    here = pathlib.Path(__file__).parent
    compiler = Compiler((here / "dialect.h").read_text() + (here.parent / "kernels.cl").read_text())
    release = None
    for options in sys.stdin.read().splitlines():
        ptx = compiler.compile(options)
        if release is None:
            release = re.search(r"release [\d.]+, V([\d.]+)", ptx)[1]
            print(f"// Made by nvrtc.py with NVRTC {release} of dialect.h and ../kernels.cl.")
        # Without the comment at the start, and the blank lines.
        ptx = re.sub(r"\A(//.*\n|\n)*\.version .*", f".version {VERSION}", ptx)
        ptx = re.sub(r"\n\n+", "\n", ptx)
        print(f"{MARK}{options}\n{ptx.strip()}")


def inspect(arch):
    ptxas = wheel("nvidia.cuda_nvcc", "bin/ptxas")
    modules = sys.stdin.read().split(MARK)[1:]
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        for module in modules:
            options, text = module.split("\n", 1)
            (place / "kernels.ptx").write_text(text)
            command = [ptxas, "-v", f"-arch={arch}", place / "kernels.ptx", "-o", place / "kernels.cubin"]
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                sys.exit(f"{options}: {done.stderr}")
            for kernel in done.stderr.split("Compiling entry function '")[1:]:
                name = kernel.split("'")[0]
                spilled = sum(int(n) for n in re.findall(r"(\d+) bytes spill", kernel))
                registers = re.search(r"Used (\d+) registers", kernel)[1]
                print(f"{options}\t{name}\t{registers}\t{spilled}")


match sys.argv[1:]:
    case ["compile"]:
        compile_all()
    case ["inspect", arch]:
        inspect(arch)
    case _:
        sys.exit(__doc__)

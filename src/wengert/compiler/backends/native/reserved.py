"""Names that a C or C++ compiler may refuse, or take for something else, if a program gives them to its own things."""

from __future__ import annotations

import re

__all__ = ["is_reserved"]

# Keywords of C up to C23 and of C++ up to C++20, those that compilers add, and macros.
KEYWORDS = """EOF I INFINITY MAXFLOAT NAN NFDBITS NULL ONCE_FLAG_INIT alignas alignof and and_eq asm assert auto bitand
bitor bool break case catch char char16_t char32_t char8_t class co_await co_return co_yield compl complex concept const
const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum errno
explicit export extern false float for fortran friend goto if imaginary inline int linux long math_errhandling mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires
restrict return short signed sizeof static static_assert static_cast stderr stdin stdout struct switch template this
thread_local throw true try typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile
wchar_t while xor xor_eq"""
MACROS = re.compile(
    "(M|FP|HUGE|CMPLX|SNAN|U?INT|SIG|SIZE|PTRDIFF|WCHAR|WINT|FLT|DBL|LDBL|EXIT|RAND|MB|MATH|FD|BIG|LITTLE|PDP|BYTE)_"
    "|(U?INT|CMPLX|SNAN)([A-Z0-9]|$)|W[A-Z]{5,}$|_|.*_t$"
)
# What <math.h>, <stdlib.h>, <string.h> and <stdint.h> declare, BSD, X/Open and GNU included, up to glibc 2.43, and
# functions of other headers that compilers know or that every program has: a function of such a name would take their
# place.
LIBRARY = """a64l abort abs access acos acosh acospi alarm aligned_alloc alloca arc4random arc4random_buf
arc4random_uniform asin asinh asinpi at_quick_exit atan atan2 atan2pi atanh atanpi atexit atof atoi atol atoll basename
bcmp bcopy be16toh be32toh be64toh bsearch bzero cabs cacos cacosh call_once calloc canonicalize canonicalize_file_name
carg casin casinh catan catanh cbrt ccos ccosh ceil cexp cimag clearenv clock clog clog10 close comparison_fn_t
compoundn conj copysign cos cosh cospi cpow cproj creal csin csinh csqrt ctan ctanh daddl dcgettext ddivl dfmal dgettext
div dmull drand48 drand48_data drem dsqrtl dsubl dup ecvt environ erand48 erf erfc execl execle execlp execv execve
execvp exit exp exp10 exp10m1 exp2 exp2m1 explicit_bzero expm1 fabs fadd faddl fclose fcvt fdim fdiv fdivl fflush ffma
ffmal ffs ffsl ffsll finite floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag fmin fminimum
fminimum_mag fminimum_mag_num fminimum_num fminmag fmod fmul fmull fopen fork fpclassify fprintf fputc fputs fread free
free_aligned_sized free_sized frexp fromfp fromfpx fscanf fsqrt fsqrtl fsub fsubl fwrite gamma gcvt getc getchar getenv
getloadavg getpayload getpt getsubopt gettext grantpt htobe16 htobe32 htobe64 htole16 htole32 htole64 hypot ilogb
imaxabs index initstate isalnum isalpha isascii isblank iscanonical iscntrl isdigit iseqsig isfinite isgraph isgreater
isgreaterequal isinf isless islessequal islessgreater islower isnan isnormal isprint ispunct issignaling isspace
issubnormal isunordered isupper iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct
iswspace iswupper iswxdigit isxdigit iszero j0 j1 jn jrand48 kill l64a labs lcong48 ldexp ldiv le16toh le32toh le64toh
lgamma link llabs lldiv llogb llrint llround log log10 log10p1 log1p log2 log2p1 logb logp1 longjmp lrand48 lrint lround
main malloc mblen mbstowcs mbtowc memalignment memccpy memchr memcmp memcpy memfrob memmem memmove mempcpy memrchr
memset memset_explicit mkdtemp mkostemp mkostemp64 mkostemps mkostemps64 mkstemp mkstemp64 mkstemps mkstemps64 mktemp
modf mrand48 nan nearbyint nextafter nextdown nexttoward nextup nrand48 on_exit once_flag open pause perror pipe
posix_memalign posix_openpt pow pow10 pown powr printf pselect ptsname putc putchar putenv puts qecvt qfcvt qgcvt qsort
quick_exit raise rand random random_data rawmemchr read realloc reallocarray realpath remainder remove remquo rename
rindex rint rootn round roundeven rpmatch rsqrt scalb scalbln scalbn scanf secure_getenv seed48 select setenv setjmp
setpayload setpayloadsig setstate sigabbrev_np sigdescr_np signal signbit signgam significand sin sincos sinh sinpi
sleep snprintf sprintf sqrt srand srand48 srandom sscanf stpcpy stpncpy strcasecmp strcasestr strcat strchr strchrnul
strcmp strcoll strcpy strcspn strdup strdupa strerror strerrordesc_np strerrorname_np strfmon strfromd strfromf
strfromf128 strfromf32 strfromf32x strfromf64 strfromf64x strfroml strfry strlcat strlcpy strlen strncasecmp strncat
strncmp strncpy strndup strndupa strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof strtof128 strtof32
strtof32x strtof64 strtof64x strtok strtol strtold strtoll strtoq strtoul strtoull strtouq strverscmp strxfrm system tan
tanh tanpi tgamma time timespec timeval tmpfile toascii tolower totalorder totalordermag toupper towlower towupper trunc
uabs ufromfp ufromfpx uint ulabs ullabs ulong umaxabs unlink unlockpt unsetenv ushort valloc vfprintf vfscanf vprintf
vscanf vsnprintf vsprintf vsscanf wcstombs wctomb write y0 y1 yn"""
# The same as patterns: arithmetic of one type from another's, strings to numbers, types.
PATTERNS = re.compile(
    r"(f(32|64)?x?|d)(add|sub|mul|div|fma|sqrt)(l|f\d+x?)?$|str(to|from)[a-z]+\d*x?(_l)?$|(u|fd)_|f(max|min)imum"
)
TYPES = ("f", "l", "f16", "f32", "f64", "f128", "f32x", "f64x")  # the ends of variants for other types: sinf, sinl
_KEYWORDS, _LIBRARY = frozenset(KEYWORDS.split()), frozenset(LIBRARY.split())


def is_reserved(name: str, external: bool = False) -> bool:
    """Return True for keywords, macros, names that begin with an underscore or end in _t, and, for `external` names,
    what the C library declares, which an argument may hide.

    >>> [name for name in ("M_PI", "new", "_Bool", "loss_t", "M", "gamma", "strike") if is_reserved(name)]
    ['M_PI', 'new', '_Bool', 'loss_t']
    >>> [name for name in ("gamma", "y0f", "strtod_l", "gammas", "y", "strike") if is_reserved(name, external=True)]
    ['gamma', 'y0f', 'strtod_l']
    """
    if name in _KEYWORDS or MACROS.match(name):
        return True
    stem = name.removesuffix("_r").removesuffix("_l")
    if external and PATTERNS.match(name):
        return True
    return external and not _LIBRARY.isdisjoint([name, stem, *[stem.removesuffix(end) for end in TYPES]])

! apportion for Fortran: the functions of apportion.h, which describes them. Arguments that may be NULL in C are
! optional here; the limits that C calls min and max are least and most. Texts end with c_null_char:
! "columns" // c_null_char. Compile this file with your program, and link with -lapportion.
!
! License: MIT or Apache-2.0.
module apportion
   use, intrinsic :: iso_c_binding
   implicit none
   private :: c_length

   integer(c_int), parameter :: APPORTION_OK = 0, APPORTION_FAILED = 1, APPORTION_INVALID = 2, &
      APPORTION_INTERNAL = 3
   integer(c_int), parameter :: APPORTION_VERSION_MAJOR = 0, APPORTION_VERSION_MINOR = 1, &
      APPORTION_VERSION_PATCH = 0
   integer(c_int), parameter :: APPORTION_FASTER = 0, APPORTION_BALANCED = 1, APPORTION_WARMING_UP = 2, &
      APPORTION_UNCERTAIN = 3, APPORTION_SMALL_GAIN = 4, APPORTION_MOVING_COST = 5, &
      APPORTION_NOTHING_BETTER = 6
   integer(c_int), parameter :: APPORTION_ANY_ORDER = 1, APPORTION_LATENCY = 2

   interface
      function apportion_version() bind(C, name="apportion_version") result(text)
         import :: c_ptr
         type(c_ptr) :: text
      end function

      function apportion_last_error() bind(C, name="apportion_last_error") result(text)
         import :: c_ptr
         type(c_ptr) :: text
      end function

      function apportion_shares_from_times(units, processors, work, seconds, shares) &
         bind(C, name="apportion_shares_from_times") result(code)
         import :: c_int, c_int64_t, c_double
         integer(c_int64_t), value :: units, processors
         real(c_double), intent(in), optional :: work(*)
         real(c_double), intent(in) :: seconds(*)
         integer(c_int64_t), intent(out) :: shares(*)
         integer(c_int) :: code
      end function

      function apportion_shares_from_speeds(units, processors, speeds, shares) &
         bind(C, name="apportion_shares_from_speeds") result(code)
         import :: c_int, c_int64_t, c_double
         integer(c_int64_t), value :: units, processors
         real(c_double), intent(in) :: speeds(*)
         integer(c_int64_t), intent(out) :: shares(*)
         integer(c_int) :: code
      end function

      function apportion_models_read(path, models) bind(C, name="apportion_models_read") result(code)
         import :: c_int, c_char, c_ptr
         character(kind=c_char), intent(in) :: path(*)
         type(c_ptr), intent(out) :: models
         integer(c_int) :: code
      end function

      function apportion_models_new(processors, points, sizes, seconds, max_sizes, models) &
         bind(C, name="apportion_models_new") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         integer(c_int64_t), value :: processors, points
         real(c_double), intent(in) :: sizes(*), seconds(*)
         real(c_double), intent(in), optional :: max_sizes(*)
         type(c_ptr), intent(out) :: models
         integer(c_int) :: code
      end function

      subroutine apportion_models_free(models) bind(C, name="apportion_models_free")
         import :: c_ptr
         type(c_ptr), value :: models
      end subroutine

      function apportion_shares_from_models(models, units, processors, shares, seconds) &
         bind(C, name="apportion_shares_from_models") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: models
         integer(c_int64_t), value :: units, processors
         integer(c_int64_t), intent(out) :: shares(*)
         real(c_double), intent(out), optional :: seconds(*)
         integer(c_int) :: code
      end function

      function apportion_shares_from_costs(models, units, costs, memory, processors, capacities, flags, &
         shares, offsets) bind(C, name="apportion_shares_from_costs") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: models
         integer(c_int64_t), value :: units, processors
         real(c_double), intent(in) :: costs(*)
         real(c_double), intent(in), optional :: memory(*)
         integer(c_int64_t), intent(in), optional :: capacities(*)
         integer(c_int), value :: flags
         integer(c_int64_t), intent(out) :: shares(*)
         integer(c_int64_t), intent(out), optional :: offsets(*)
         integer(c_int) :: code
      end function

      function apportion_balancer_new(units, processors, balancer) &
         bind(C, name="apportion_balancer_new") result(code)
         import :: c_int, c_int64_t, c_ptr
         integer(c_int64_t), value :: units, processors
         type(c_ptr), intent(out) :: balancer
         integer(c_int) :: code
      end function

      function apportion_balancer_set(balancer, option, value) &
         bind(C, name="apportion_balancer_set") result(code)
         import :: c_int, c_char, c_double, c_ptr
         type(c_ptr), value :: balancer
         character(kind=c_char), intent(in) :: option(*)
         real(c_double), value :: value
         integer(c_int) :: code
      end function

      function apportion_balancer_limits(balancer, processors, least, most, multiple_of) &
         bind(C, name="apportion_balancer_limits") result(code)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: balancer
         integer(c_int64_t), value :: processors
         integer(c_int64_t), intent(in), optional :: least(*), most(*), multiple_of(*)
         integer(c_int) :: code
      end function

      function apportion_balancer_start(balancer, models) &
         bind(C, name="apportion_balancer_start") result(code)
         import :: c_int, c_ptr
         type(c_ptr), value :: balancer, models
         integer(c_int) :: code
      end function

      function apportion_balancer_observe(balancer, processors, seconds, shares, offsets, reason) &
         bind(C, name="apportion_balancer_observe") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: balancer
         integer(c_int64_t), value :: processors
         real(c_double), intent(in) :: seconds(*)
         integer(c_int64_t), intent(out), optional :: shares(*), offsets(*)
         integer(c_int), intent(out), optional :: reason
         integer(c_int) :: code
      end function

      function apportion_balancer_slowest(balancer, rank) &
         bind(C, name="apportion_balancer_slowest") result(code)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: balancer
         integer(c_int64_t), intent(out) :: rank
         integer(c_int) :: code
      end function

      function apportion_balancer_shares(balancer, processors, shares, offsets) &
         bind(C, name="apportion_balancer_shares") result(code)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: balancer
         integer(c_int64_t), value :: processors
         integer(c_int64_t), intent(out), optional :: shares(*), offsets(*)
         integer(c_int) :: code
      end function

      function apportion_balancer_save(balancer, capacity, state, length) &
         bind(C, name="apportion_balancer_save") result(code)
         import :: c_int, c_int64_t, c_char, c_ptr
         type(c_ptr), value :: balancer
         integer(c_int64_t), value :: capacity
         character(kind=c_char), intent(out), optional :: state(*)
         integer(c_int64_t), intent(out) :: length
         integer(c_int) :: code
      end function

      function apportion_balancer_load(state, balancer) bind(C, name="apportion_balancer_load") result(code)
         import :: c_int, c_char, c_ptr
         character(kind=c_char), intent(in) :: state(*)
         type(c_ptr), intent(out) :: balancer
         integer(c_int) :: code
      end function

      subroutine apportion_balancer_free(balancer) bind(C, name="apportion_balancer_free")
         import :: c_ptr
         type(c_ptr), value :: balancer
      end subroutine

      function apportion_layout_new(method, m, k, n, processors, speeds, layout) &
         bind(C, name="apportion_layout_new") result(code)
         import :: c_int, c_int64_t, c_char, c_double, c_ptr
         character(kind=c_char), intent(in) :: method(*)
         integer(c_int64_t), value :: m, k, n, processors
         real(c_double), intent(in) :: speeds(*)
         type(c_ptr), intent(out) :: layout
         integer(c_int) :: code
      end function

      function apportion_layout_rectangles(layout, capacity, rectangles, count) &
         bind(C, name="apportion_layout_rectangles") result(code)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: layout
         integer(c_int64_t), value :: capacity
         integer(c_int64_t), intent(out), optional :: rectangles(5, *)
         integer(c_int64_t), intent(out) :: count
         integer(c_int) :: code
      end function

      subroutine apportion_layout_free(layout) bind(C, name="apportion_layout_free")
         import :: c_ptr
         type(c_ptr), value :: layout
      end subroutine

      function apportion_forecast(layout, platform, models, processors, seconds, compute, communicate) &
         bind(C, name="apportion_forecast") result(code)
         import :: c_int, c_int64_t, c_char, c_double, c_ptr
         type(c_ptr), value :: layout, models
         character(kind=c_char), intent(in) :: platform(*)
         integer(c_int64_t), value :: processors
         real(c_double), intent(out) :: seconds
         real(c_double), intent(out), optional :: compute(*), communicate(*)
         integer(c_int) :: code
      end function

      function apportion_product_new(product) bind(C, name="apportion_product_new") result(code)
         import :: c_int, c_ptr
         type(c_ptr), intent(out) :: product
         integer(c_int) :: code
      end function

      function apportion_product_set(product, option, setting) &
         bind(C, name="apportion_product_set") result(code)
         import :: c_int, c_char, c_ptr
         type(c_ptr), value :: product
         character(kind=c_char), intent(in) :: option(*), setting(*)
         integer(c_int) :: code
      end function

      function apportion_product_run(product, m, k, n, a, b, c) &
         bind(C, name="apportion_product_run") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: product
         integer(c_int64_t), value :: m, k, n
         real(c_double), intent(in) :: a(*), b(*)
         real(c_double), intent(out) :: c(*)
         integer(c_int) :: code
      end function

      function apportion_product_syrk(product, n, k, a, c) bind(C, name="apportion_product_syrk") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: product
         integer(c_int64_t), value :: n, k
         real(c_double), intent(in) :: a(*)
         real(c_double), intent(out) :: c(*)
         integer(c_int) :: code
      end function

      function apportion_product_plan(product, capacity, plan, length) &
         bind(C, name="apportion_product_plan") result(code)
         import :: c_int, c_int64_t, c_char, c_ptr
         type(c_ptr), value :: product
         integer(c_int64_t), value :: capacity
         character(kind=c_char), intent(out), optional :: plan(*)
         integer(c_int64_t), intent(out) :: length
         integer(c_int) :: code
      end function

      subroutine apportion_product_free(product) bind(C, name="apportion_product_free")
         import :: c_ptr
         type(c_ptr), value :: product
      end subroutine

      function apportion_factorisation_new(factorisation) &
         bind(C, name="apportion_factorisation_new") result(code)
         import :: c_int, c_ptr
         type(c_ptr), intent(out) :: factorisation
         integer(c_int) :: code
      end function

      function apportion_factorisation_set(factorisation, option, setting) &
         bind(C, name="apportion_factorisation_set") result(code)
         import :: c_int, c_char, c_ptr
         type(c_ptr), value :: factorisation
         character(kind=c_char), intent(in) :: option(*), setting(*)
         integer(c_int) :: code
      end function

      function apportion_factor(factorisation, n, a, factors, pivots) &
         bind(C, name="apportion_factor") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: factorisation
         integer(c_int64_t), value :: n
         real(c_double), intent(in) :: a(*)
         real(c_double), intent(out) :: factors(*)
         integer(c_int64_t), intent(out), optional :: pivots(*)
         integer(c_int) :: code
      end function

      function apportion_solve(factorisation, n, sides, a, b, x) &
         bind(C, name="apportion_solve") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: factorisation
         integer(c_int64_t), value :: n, sides
         real(c_double), intent(in) :: a(*), b(*)
         real(c_double), intent(out) :: x(*)
         integer(c_int) :: code
      end function

      subroutine apportion_factorisation_free(factorisation) &
         bind(C, name="apportion_factorisation_free")
         import :: c_ptr
         type(c_ptr), value :: factorisation
      end subroutine

      function apportion_advection_new(advection) &
         bind(C, name="apportion_advection_new") result(code)
         import :: c_int, c_ptr
         type(c_ptr), intent(out) :: advection
         integer(c_int) :: code
      end function

      function apportion_advection_set(advection, option, setting) &
         bind(C, name="apportion_advection_set") result(code)
         import :: c_int, c_char, c_ptr
         type(c_ptr), value :: advection
         character(kind=c_char), intent(in) :: option(*), setting(*)
         integer(c_int) :: code
      end function

      function apportion_advect(advection, axes, sizes, steps, field, cx, cy, cz, result) &
         bind(C, name="apportion_advect") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: advection
         integer(c_int64_t), value :: axes, steps
         integer(c_int64_t), intent(in) :: sizes(*)
         real(c_double), intent(in) :: field(*)
         real(c_double), intent(in), optional :: cx(*), cy(*), cz(*)
         real(c_double), intent(out) :: result(*)
         integer(c_int) :: code
      end function

      subroutine apportion_advection_free(advection) &
         bind(C, name="apportion_advection_free")
         import :: c_ptr
         type(c_ptr), value :: advection
      end subroutine

      function apportion_graph(method, vertices, offsets, neighbours, vertex_weights, edge_weights, processors, &
         speeds, parts, edge_cut, volume) bind(C, name="apportion_graph") result(code)
         import :: c_int, c_int32_t, c_int64_t, c_char, c_double
         character(kind=c_char), intent(in), optional :: method(*)
         integer(c_int64_t), value :: vertices, processors
         integer(c_int64_t), intent(in) :: offsets(*), neighbours(*)
         integer(c_int64_t), intent(in), optional :: vertex_weights(*), edge_weights(*)
         real(c_double), intent(in) :: speeds(*)
         integer(c_int32_t), intent(out) :: parts(*)
         integer(c_int64_t), intent(out), optional :: edge_cut, volume
         integer(c_int) :: code
      end function

      function apportion_world_adopt(communicator, size_of_communicator, world) &
         bind(C, name="apportion_world_adopt") result(code)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: communicator
         integer(c_int64_t), value :: size_of_communicator
         type(c_ptr), intent(out) :: world
         integer(c_int) :: code
      end function

      function apportion_world_adopt_fortran(communicator, world) &
         bind(C, name="apportion_world_adopt_fortran") result(code)
         import :: c_int, c_ptr
         integer(c_int), value :: communicator
         type(c_ptr), intent(out) :: world
         integer(c_int) :: code
      end function

      subroutine apportion_world_free(world) bind(C, name="apportion_world_free")
         import :: c_ptr
         type(c_ptr), value :: world
      end subroutine

      function apportion_matmul_cut(m, k, processors, offsets, offsets_of_b) &
         bind(C, name="apportion_matmul_cut") result(code)
         import :: c_int, c_int64_t
         integer(c_int64_t), value :: m, k, processors
         integer(c_int64_t), intent(in) :: offsets(*)
         integer(c_int64_t), intent(out) :: offsets_of_b(*)
         integer(c_int) :: code
      end function

      function apportion_matmul(world, m, k, n, offsets, a, b, c) &
         bind(C, name="apportion_matmul") result(code)
         import :: c_int, c_int64_t, c_double, c_ptr
         type(c_ptr), value :: world
         integer(c_int64_t), value :: m, k, n
         integer(c_int64_t), intent(in) :: offsets(*)
         real(c_double), intent(in) :: a(*), b(*)
         real(c_double), intent(out) :: c(*)
         integer(c_int) :: code
      end function

      function c_length(text) bind(C, name="strlen") result(length)
         import :: c_ptr, c_size_t
         type(c_ptr), value :: text
         integer(c_size_t) :: length
      end function
   end interface

contains

   ! The message of the last failure in this thread, as a Fortran text.
   function apportion_message() result(message)
      character(:), allocatable :: message
      character(kind=c_char), pointer :: bytes(:)
      type(c_ptr) :: text
      integer :: i

      text = apportion_last_error()
      call c_f_pointer(text, bytes, [c_length(text)])
      allocate (character(size(bytes)) :: message)
      do i = 1, size(bytes)
         message(i:i) = bytes(i)
      end do
   end function

end module

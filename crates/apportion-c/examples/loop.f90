! A loop over tasks on processors of unequal speed, in Fortran.
!
!   mpifort apportion.f90 loop.f90 $(pkg-config --libs apportion) -o loop
!   mpirun -n 2 ./loop 4 1        # rank 0 is four times slower than rank 1
program loop
   use apportion
   use mpi
   implicit none
   integer(c_int64_t), parameter :: tasks = 2000
   integer, parameter :: rounds = 15
   type(c_ptr) :: balancer
   integer(c_int64_t), allocatable :: offsets(:)
   real(c_double), allocatable :: seconds(:)
   real(c_double) :: begin, mine
   integer(8) :: total, everybody
   integer(c_int64_t) :: i
   integer(c_int) :: reason
   integer :: ierror, rank, ranks, round, slowness
   character(16) :: argument

   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   slowness = 1
   if (rank < command_argument_count()) then
      call get_command_argument(rank + 1, argument)
      read (argument, *) slowness
   end if

   allocate (offsets(ranks + 1), seconds(ranks))
   call check(apportion_balancer_new(tasks, int(ranks, c_int64_t), balancer))
   call check(apportion_balancer_set(balancer, "hysteresis" // c_null_char, 0.03_c_double))
   call check(apportion_balancer_shares(balancer, int(ranks, c_int64_t), offsets=offsets))

   do round = 1, rounds
      begin = MPI_Wtime()
      total = 0
      do i = offsets(rank + 1) + 1, offsets(rank + 2)
         total = total + steps(i, slowness)
      end do
      mine = MPI_Wtime() - begin
      call MPI_Allgather(mine, 1, MPI_DOUBLE_PRECISION, seconds, 1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierror)
      call MPI_Reduce(total, everybody, 1, MPI_INTEGER8, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
      call check(apportion_balancer_observe(balancer, int(ranks, c_int64_t), seconds, offsets=offsets, reason=reason))
   end do

   if (rank == 0) print '(a, i0, a, *(1x, i0))', "steps ", everybody, ", tasks", offsets(2:) - offsets(:ranks)
   call apportion_balancer_free(balancer)
   call MPI_Finalize(ierror)

contains

   ! The number of Collatz steps of the numbers near a task, computed `slowness` times.
   integer(8) function steps(task, slowness)
      integer(c_int64_t), intent(in) :: task
      integer, intent(in) :: slowness
      integer(8) :: number, start
      integer :: again
      do again = 1, slowness
         steps = 0
         do start = 1, 100
            number = start + mod(task, 2_8)
            do while (number > 1)
               number = merge(number / 2, 3 * number + 1, mod(number, 2_8) == 0)
               steps = steps + 1
            end do
         end do
      end do
   end function

   subroutine check(code)
      integer(c_int), intent(in) :: code
      integer :: failed
      if (code == APPORTION_OK) return
      print *, "rank ", rank, ": ", apportion_message()
      call MPI_Abort(MPI_COMM_WORLD, 1, failed)
   end subroutine

end program

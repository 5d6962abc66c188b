"""Molds (`preload_app = mold`): processes that have loaded the application, and fork the workers of a generation.

    arbiter (MoldHandle)     a socket pair (`requests`)      mold (Mold)
       | fork ------------------------------------------------> loads, is looked through, freezes its memory
       | <--------------------------------------------- Ready   (its pipe, as a worker's)
       | position, ends of pipes ----------------------------->
       |                                                        | fork --> intermediate
       |                                                        |            | fork --> worker: waits
       |                                                        |            | exits; its child is now the arbiter's
       | <------------------------------------------ HasForked  | <-- reaped
       |                                                        | ---- go -----------> worker
       | <-------------------------------------------------------------------- Here   (the kernel adds its pid)

Workers are children of the arbiter, a child subreaper (prctl(2)): it reaps them and gets their exit statuses. The
second fork is what makes them orphans; clone(2) with CLONE_PARENT would pass by the handlers of pthread_atfork(3).

The arbiter believes no pid that it is told. With SO_PASSCRED the kernel says which process has sent a message, and
waitid(2) says whether that is a child.

A process may be killed at any moment. All that is known of a worker until it says Here is its pipe: when no process
holds the pipe's other end any more, and the mold has answered or is dead, there is no such worker. A worker that is not
told to go, because the intermediate process or the mold was killed, ends.
"""

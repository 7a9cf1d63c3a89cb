// Two workers, each with a mailbox: a note is left where the other finds it, and who finds none goes to sleep. Each
// announces its own note and then looks for the other's, so at least one of them must see something.
//
// The processor may let the look overtake the announcement, which still waits in the store buffer: then both go to
// sleep, and nobody wakes anyone. -DFIXED puts a fence between the two.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int note[2];
static atomic_int asleep;

static void *worker(void *argument)
{
    int me = (int)(long)argument;
    atomic_store_explicit(&note[me], 1, memory_order_release);
#ifdef FIXED
    atomic_thread_fence(memory_order_seq_cst);
#endif
    if (atomic_load_explicit(&note[1 - me], memory_order_acquire) == 0)
        assert(atomic_fetch_add(&asleep, 1) == 0);
    return 0;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, worker, (void *)1L);
    worker((void *)0L);
    pthread_join(other, 0);
    return 0;
}

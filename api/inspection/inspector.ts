import { ZerofleetError } from '../../contracts/index.js';
import { usableCores } from '../../platform/process/usable-cores.js';
import { ThreadPool } from '../../platform/threads/thread-pool.js';
import type { ApiLimits } from '../limits.js';
import type { InspectionTasks } from './tasks.js';

/**
 * Reads what clients send in threads, so that the server answers others meanwhile. The owner of each task is a project: projects take
 * turns. A task that computes too long or takes too much memory fails with `content_too_complex`, and nothing else does.
 */
export type Inspector = ThreadPool<InspectionTasks>;

/** Some of them wait for the object store. */
const LEAST_THREADS = 2;
const MOST_THREADS = 4;
/** An idle thread ends after so long, which frees its memory. */
const IDLE_MS = 10_000;

export function createInspector({
  inspection_ms,
  inspection_heap_mb,
}: Pick<ApiLimits, 'inspection_ms' | 'inspection_heap_mb'>): Inspector {
  return new ThreadPool<InspectionTasks>({
    module: new URL('thread.js', import.meta.url),
    threads: Math.min(MOST_THREADS, Math.max(LEAST_THREADS, usableCores() - 1)),
    heap_mb: inspection_heap_mb,
    task_ms: inspection_ms,
    idle_ms: IDLE_MS,
    limited: (limit) =>
      new ZerofleetError(
        'content_too_complex',
        limit === 'time'
          ? `the server has read it for ${inspection_ms / 1000} s and come to no end; send something simpler`
          : `the server needs more than ${inspection_heap_mb} MiB to read it; send something simpler`,
      ),
  });
}

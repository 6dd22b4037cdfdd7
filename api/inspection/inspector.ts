import { ZerofleetError } from '../../contracts/index.js';
import { programPath } from '../../platform/process/programs.js';
import { usableCores } from '../../platform/process/usable-cores.js';
import { ThreadPool } from '../../platform/threads/thread-pool.js';
import type { ApiLimits } from '../limits.js';
import type { InspectionTasks } from './tasks.js';

/**
 * Parses client content in threads, so that the event loop stays free. Tasks are scheduled fairly between projects. A
 * task that exceeds its CPU time or memory fails with `content_too_complex` and affects no other task.
 */
export type Inspector = ThreadPool<InspectionTasks>;

/** Some tasks wait for the object store. */
const MIN_THREADS = 2;
const MAX_THREADS = 4;
/** Idle time after which a thread ends and frees its memory. */
const IDLE_MS = 10_000;

export function createInspector({
  inspection_ms,
  inspection_heap_mb,
}: Pick<ApiLimits, 'inspection_ms' | 'inspection_heap_mb'>): Inspector {
  return new ThreadPool<InspectionTasks>({
    module: programPath('api/inspection/thread-main'),
    threads: Math.min(MAX_THREADS, Math.max(MIN_THREADS, usableCores() - 1)),
    heap_mb: inspection_heap_mb,
    task_ms: inspection_ms,
    idle_ms: IDLE_MS,
    limited: (limit) =>
      new ZerofleetError(
        'content_too_complex',
        limit === 'time'
          ? `reading it takes more than ${inspection_ms / 1000} s; send something simpler`
          : `reading it takes more than ${inspection_heap_mb} MiB; send something simpler`,
      ),
  });
}

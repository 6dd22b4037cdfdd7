import { ZerofleetError } from '../../contracts/index.js';
import { type Config, CPU_SLOTS } from '../../platform/config/config.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ChildProcesses } from '../common/child-processes.js';
import { GpuPool } from '../gpus/gpu-pool.js';
import type { LookOptions, MachineGpu, MachineReport } from '../gpus/look-at-machine.js';
import { runTask } from '../tasks/task-runner.js';

/** What the ranks of a worker compute on. */
export interface Compute {
  /** Ranks that may run at once. */
  slots: number;
  /** The scope of bit-exactness of its ranks. */
  numerics: string | null;
  /** Null: they run on the CPU. */
  gpus: GpuPool | null;
}

const LOOK_MS = 60_000;

/**
 * In a process of its own: this one never loads the native core, and a GPU that hangs must not stop it.
 * @throws ZerofleetError `device_unavailable` where the driver does not work, or does not answer in time
 */
export async function lookByTask(
  processes: ChildProcesses,
  options: LookOptions,
  { log, signal }: { log: Logger; signal?: AbortSignal },
): Promise<MachineReport> {
  const late = AbortSignal.timeout(LOOK_MS);
  const signals = AbortSignal.any(signal ? [late, signal] : [late]);
  try {
    return await runTask(
      processes,
      { kind: 'look_at_machine', ...options },
      { signal: signals, session: null, log },
    );
  } catch (error) {
    if (!late.aborted) throw error;
    throw new ZerofleetError(
      'device_unavailable',
      `the GPUs' driver did not answer for ${LOOK_MS} ms: look at nvidia-smi`,
    );
  }
}

/**
 * Finds out what ranks will compute on, by ZEROFLEET_DEVICE and what there is.
 * @throws ZerofleetError `invalid_configuration`, `device_unavailable`: what was asked for is not there, with what to look at
 */
export async function findCompute(
  { device, slots }: Pick<Config, 'device' | 'slots'>,
  processes: ChildProcesses,
  log: Logger,
): Promise<Compute> {
  const wanted = device !== 'cpu';
  const report = await lookByTask(processes, { gpus: wanted, cuda: wanted }, { log }).catch(
    (error: unknown) => {
      if (!wanted || !(error instanceof ZerofleetError) || error.code !== 'device_unavailable') throw error;
      throw new ZerofleetError(
        'device_unavailable',
        `${error.message}. With ZEROFLEET_DEVICE=cpu ranks would not need a GPU`,
      );
    },
  );
  if (!wanted) return onCpu(slots, report);
  const missing = whyNoGpu(report);
  if (missing === null) return onGpus(slots, report.gpus, log);
  if (device === 'cuda') throw new ZerofleetError('device_unavailable', `ZEROFLEET_DEVICE=cuda: ${missing}`);
  if (report.gpus.length > 0 || report.num_cuda_devices) log.warn(`ranks run on the CPU: ${missing}`);
  return onCpu(slots, report);
}

function onCpu(slots: number | null, report: MachineReport): Compute {
  return { slots: slots ?? CPU_SLOTS, numerics: report.cpu_numerics, gpus: null };
}

function whyNoGpu({ has_cuda, gpus, num_cuda_devices }: MachineReport): string | null {
  if (!has_cuda)
    return 'the native core was built without CUDA: build it where CMake finds nvcc and a GPU, or use the image worker-cuda';
  if (gpus.length > 0) return null;
  if (num_cuda_devices)
    return "CUDA shows GPUs, but the driver's libnvidia-ml.so.1 is not here: a container needs the driver capabilities compute,utility";
  return 'no GPU was found: look at nvidia-smi, at CUDA_VISIBLE_DEVICES and, in a container, at whether it was given GPUs';
}

function onGpus(limit: number | null, found: readonly MachineGpu[], log: Logger): Compute {
  if (limit !== null && limit > found.length)
    throw new ZerofleetError(
      'invalid_configuration',
      `ZEROFLEET_SLOTS is ${limit}, and there are ${found.length} GPUs: each rank needs one of its own. Leave it unset for one slot per GPU`,
    );
  const gpus = new GpuPool({ found, limit, log });
  for (const gpu of gpus.gpus) log[gpu.problem === null ? 'info' : 'error']({ ...gpu }, 'GPU found');
  if (gpus.slots > 0) return { slots: gpus.slots, numerics: gpus.numerics, gpus };
  const problems = gpus.gpus.map(({ uuid, problem }) => `${uuid}: ${problem}`).join('; ');
  throw new ZerofleetError('device_unavailable', `none of the ${found.length} GPUs can be used: ${problems}`);
}

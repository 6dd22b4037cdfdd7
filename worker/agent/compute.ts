import { ZerofleetError } from '../../contracts/index.js';
import { type Config, CPU_SLOTS } from '../../platform/config/config.js';
import { isGpuVariable } from '../../platform/config/gpu-env.js';
import type { Logger } from '../../platform/logging/logging.js';
import type { ChildProcesses } from '../shared/child-processes.js';
import type { InspectOptions, MachineGpu, MachineReport } from '../tasks/inspect-machine.js';
import { GpuPool } from './gpus/gpu-pool.js';
import { runTask } from './supervisor/task-runner.js';

/** Devices on which a worker's ranks compute. */
export interface Compute {
  /** Maximum number of ranks at a time. */
  slots: number;
  /** Numerics fingerprint: ranks with the same fingerprint compute the same bits. */
  numerics: string | null;
  /** GPUs of the ranks; null on the CPU. */
  gpus: GpuPool | null;
  /** GPUs for models that answer; null: models run on the CPU. */
  answer_gpus: GpuPool | null;
}

/** Time limit of an inspection. */
const INSPECTION_MS = 60_000;

/**
 * Inspects the machine in a child process. The agent never loads the native core, and a GPU that hangs must not block
 * it.
 * @throws ZerofleetError `device_unavailable` if the driver fails or does not answer in time
 */
export async function inspectMachineByTask(
  processes: ChildProcesses,
  options: InspectOptions,
  { log, signal }: { log: Logger; signal?: AbortSignal },
): Promise<MachineReport> {
  const timeout = AbortSignal.timeout(INSPECTION_MS);
  const signals = AbortSignal.any(signal ? [timeout, signal] : [timeout]);
  try {
    return await runTask(
      processes,
      { kind: 'inspect_machine', ...options },
      { signal: signals, session: null, log },
    );
  } catch (error) {
    if (!timeout.aborted) throw error;
    throw new ZerofleetError(
      'device_unavailable',
      `the GPU driver did not answer for ${INSPECTION_MS} ms: run nvidia-smi`,
    );
  }
}

/**
 * Selects the device of the ranks from ZEROFLEET_DEVICE and the machine's hardware.
 * @throws ZerofleetError `invalid_configuration`, `device_unavailable` if the requested device is missing; the message
 *   says what to check
 */
export async function findCompute(
  config: Pick<Config, 'device' | 'slots' | 'answer_gpus'>,
  processes: ChildProcesses,
  log: Logger,
): Promise<Compute> {
  const { device } = config;
  const usesGpus = device !== 'cpu';
  const report = await inspectMachineByTask(processes, { gpus: usesGpus, cuda: usesGpus }, { log }).catch(
    (error: unknown) => {
      if (!usesGpus || !(error instanceof ZerofleetError) || error.code !== 'device_unavailable') throw error;
      throw new ZerofleetError(
        'device_unavailable',
        `${error.message}. With ZEROFLEET_DEVICE=cpu ranks would not need a GPU`,
      );
    },
  );
  if (!usesGpus) return onCpu(config, report);
  const missing = whyNoGpu(report);
  if (missing === null) return onGpus(config, report.gpus, log);
  if (device === 'cuda') throw new ZerofleetError('device_unavailable', `ZEROFLEET_DEVICE=cuda: ${missing}`);
  if (report.gpus.length > 0 || report.num_cuda_devices || report.cuda_problem !== null)
    log.warn(`ranks run on the CPU: ${missing}`);
  return onCpu(config, report);
}

type DeviceConfig = Pick<Config, 'slots' | 'answer_gpus'>;

function onCpu({ slots, answer_gpus }: DeviceConfig, report: MachineReport): Compute {
  if (answer_gpus > 0)
    throw new ZerofleetError(
      'invalid_configuration',
      `ZEROFLEET_ANSWER_GPUS is ${answer_gpus}, but this worker uses no GPU. Leave it unset, and the CPU answers`,
    );
  return { slots: slots ?? CPU_SLOTS, numerics: report.cpu_numerics, gpus: null, answer_gpus: null };
}

function whyNoGpu({ has_cuda, gpus, num_cuda_devices, cuda_problem }: MachineReport): string | null {
  if (!has_cuda)
    return 'the native core was built without CUDA: build it where CMake finds nvcc and a GPU, or use the image worker-cuda';
  if (gpus.length > 0) return null;
  if (num_cuda_devices)
    return 'CUDA finds GPUs, but libnvidia-ml.so.1 of the driver is missing: a container needs the driver capabilities compute,utility';
  if (cuda_problem !== null) return `no GPU was found: ${cuda_problem}`;
  return 'no GPU was found: check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, whether GPUs are assigned to it';
}

/** The last GPUs are for models that answer, the others for ranks. */
function onGpus({ slots, answer_gpus }: DeviceConfig, found: readonly MachineGpu[], log: Logger): Compute {
  const numRanks = found.length - answer_gpus;
  if (numRanks < (slots ?? 0))
    throw new ZerofleetError(
      'invalid_configuration',
      `ZEROFLEET_SLOTS is ${slots}, but there are ${numRanks} GPUs for ranks, and each rank needs its own. Leave it unset for one slot per GPU`,
    );
  if (numRanks < 1)
    throw new ZerofleetError(
      'invalid_configuration',
      `ZEROFLEET_ANSWER_GPUS is ${answer_gpus} of ${found.length} GPUs, and ranks need at least one`,
    );
  const gpus = new GpuPool({ found: found.slice(0, numRanks), limit: slots, log });
  const servingGpus = found.slice(numRanks);
  const withheld = Object.keys(process.env).filter(isGpuVariable);
  if (withheld.length > 0)
    log.warn({ variables: withheld }, 'ranks do not have these variables: only ZEROFLEET_GPU_ENV sets them');
  for (const gpu of gpus.gpus) log[gpu.problem === null ? 'info' : 'error']({ ...gpu }, 'GPU found');
  if (gpus.slots > 0)
    return {
      slots: gpus.slots,
      numerics: gpus.numerics,
      gpus,
      answer_gpus: servingGpus.length > 0 ? new GpuPool({ found: servingGpus, limit: null, log }) : null,
    };
  const problems = gpus.gpus.map(({ uuid, problem }) => `${uuid}: ${problem}`).join('; ');
  throw new ZerofleetError('device_unavailable', `none of the ${numRanks} GPUs can be used: ${problems}`);
}

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';

/** Where Linux tells of control groups; tests have files of their own. */
const LINUX = { own: '/proc/self/cgroup', root: '/sys/fs/cgroup' };

/**
 * Processor cores that this process may use: those of its affinity, but no more than the processor time that its control group and all
 * groups around it leave (`docker run --cpus`, a limit of Kubernetes), of which Node.js 20 knows nothing. At least 1.
 */
export function usableCores(cores = availableParallelism(), linux = LINUX): number {
  return Math.max(1, Math.min(cores, Math.floor(quota(linux))));
}

/** Cores' worth of processor time; Infinity without a limit. */
function quota({ own, root }: typeof LINUX): number {
  const groups = read(own)
    .split('\n')
    .map((line) => line.match(/^(\d+):([^:]*):(\/.*)$/) ?? [])
    .flatMap(([, id, controllers = '', path = '/']) => {
      // Version 2 is the line `0::PATH`; in version 1 each controller has a hierarchy of its own.
      if (id === '0') return around(root, path).map(quotaOfV2);
      return controllers.split(',').includes('cpu') ? around(join(root, 'cpu'), path).map(quotaOfV1) : [];
    });
  return Math.min(Number.POSITIVE_INFINITY, ...groups);
}

/** The folder of a group and those of all groups around it. In a container the path may be one of the host, which is not there. */
function around(root: string, path: string): string[] {
  const folders = [join(root, path)];
  for (let at = path; at !== '/'; at = dirname(at)) folders.push(join(root, dirname(at)));
  return folders;
}

function quotaOfV2(folder: string): number {
  const [max, period] = read(join(folder, 'cpu.max')).split(/\s/);
  return ratio(max, period);
}

function quotaOfV1(folder: string): number {
  return ratio(read(join(folder, 'cpu.cfs_quota_us')), read(join(folder, 'cpu.cfs_period_us')));
}

/** Without a limit the first is `max`, -1 or missing. */
function ratio(quota_us: string | undefined, period_us: string | undefined): number {
  const cores = Number(quota_us || 'max') / Number(period_us);
  return cores > 0 ? cores : Number.POSITIVE_INFINITY;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

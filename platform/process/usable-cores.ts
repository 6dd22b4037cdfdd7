import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';

/** Paths of control groups on Linux; tests have their own. */
const LINUX = { own: '/proc/self/cgroup', root: '/sys/fs/cgroup' };

/**
 * Returns the number of cores that this process may use, at least 1. These are the cores of its affinity,
 * limited by the CPU quota of its control group and all ancestors (`docker run --cpus`, a Kubernetes limit).
 * Node.js 20 ignores the quota.
 */
export function usableCores(cores = availableParallelism(), linux = LINUX): number {
  return Math.max(1, Math.min(cores, Math.floor(quota(linux))));
}

/** Returns the CPU quota in cores; Infinity without a limit. */
function quota({ own, root }: typeof LINUX): number {
  const groups = read(own)
    .split('\n')
    .map((line) => line.match(/^(\d+):([^:]*):(\/.*)$/) ?? [])
    .flatMap(([, id, controllers = '', path = '/']) => {
      // The line `0::PATH` is version 2; in version 1 each controller has its own hierarchy.
      if (id === '0') return around(root, path).map(quotaOfV2);
      return controllers.split(',').includes('cpu') ? around(join(root, 'cpu'), path).map(quotaOfV1) : [];
    });
  return Math.min(Number.POSITIVE_INFINITY, ...groups);
}

/**
 * Returns the folder of a group and those of its ancestors. In a container the path may be one of the host
 * and not exist.
 */
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
function ratio(quotaUs: string | undefined, periodUs: string | undefined): number {
  const cores = Number(quotaUs || 'max') / Number(periodUs);
  return cores > 0 ? cores : Number.POSITIVE_INFINITY;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

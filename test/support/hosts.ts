/**
 * Machines with a network of their own, as network namespaces of Linux: a bridge, at which the test, the API and Redis are, and
 * hosts with a cable to it each, which can be cut. All of it lives in namespaces without names below one process, so that
 * the kernel removes it when that process ends, in whatever way.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { ensurePrograms } from '../../platform/testing/programs.js';

const run = promisify(execFile);
const BRIDGE = 'zfbridge';
const PREFIX = '10.77.0';
const PROBE = `ip link add name ${BRIDGE} type bridge && ip link add zfa type veth peer name zfb`;

/** Address of the bridge. */
export const BRIDGE_ADDRESS = `${PREFIX}.1`;

/**
 * What runs a program in a new network, as the first of its own processes: when it or its parent ends, all of these are
 * killed.
 */
export const OWN_NETWORK = [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'],
];

/** Null where this user may make networks (installing what is needed first as root), else why not. */
export async function whyNoNetworks(): Promise<string | null> {
  const missing = await ensurePrograms(['ip', 'nsenter', 'setpriv', 'unshare'], ['iproute2', 'util-linux']);
  if (missing !== null) return missing;
  const [program = '', ...args] = [...OWN_NETWORK, 'sh', '-c', PROBE];
  return run(program, args).then(
    () => null,
    (error: { stderr?: string }) =>
      `needs the right to make network namespaces, bridges and links (root): ${error.stderr?.trim()}`,
  );
}

/** Makes the bridge. To be called once, in a network of one's own. */
export async function startNetwork(): Promise<void> {
  await ip('link set lo up');
  await ip(`link add name ${BRIDGE} type bridge`);
  await ip(`addr add ${BRIDGE_ADDRESS}/24 dev ${BRIDGE}`);
  await ip(`link set ${BRIDGE} up`);
}

/** A machine with a cable to the bridge. */
export interface TestHost {
  address: string;
  /** What runs a program there: the program and its arguments come after it. */
  launcher: string[];
  /** From now on nothing gets through, and nobody is told. */
  cut(): Promise<void>;
  mend(): Promise<void>;
}

/** A host of the network, until the test ends. @param number from 1 on, another one for each */
export async function startHost(t: Test, number: number): Promise<TestHost> {
  // It holds the namespace, until the channel to this process is closed.
  const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo made; exec cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => holder.stdin.end());
  await once(holder.stdout, 'data');
  const launcher = ['nsenter', `--net=/proc/${holder.pid}/ns/net`];
  const address = `${PREFIX}.${number + 1}`;
  const [plug, socket] = [`zfhost${number}`, `zfport${number}`];
  await ip(`link add ${socket} type veth peer name ${plug} netns ${holder.pid}`);
  await ip(`link set ${socket} master ${BRIDGE} up`);
  await ip('link set lo up', launcher);
  await ip(`addr add ${address}/24 dev ${plug}`, launcher);
  await ip(`link set ${plug} up`, launcher);
  return {
    address,
    launcher,
    cut: () => ip(`link set ${socket} down`),
    mend: () => ip(`link set ${socket} up`),
  };
}

async function ip(command: string, launcher: readonly string[] = []): Promise<void> {
  const [program = '', ...args] = [...launcher, 'ip', ...command.split(' ')];
  await run(program, args);
}

/**
 * Machines with their own network, as Linux network namespaces. The test, the API and Redis use a bridge, and hosts are
 * connected to it by cables that can be cut. All of it lives in unnamed namespaces below one process, so that the
 * kernel removes it when that process ends for any reason.
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
 * Command prefix that runs a program in a new network and process namespace: when it or its parent ends, all its
 * processes are killed.
 */
export const OWN_NETWORK = [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'],
];

/** Null if this user may create networks (installs the tools first as root), else the reason. */
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

/** Creates the bridge. Must be called once, in a separate network namespace. */
export async function startNetwork(): Promise<void> {
  await ip('link set lo up');
  await ip(`link add name ${BRIDGE} type bridge`);
  await ip(`addr add ${BRIDGE_ADDRESS}/24 dev ${BRIDGE}`);
  await ip(`link set ${BRIDGE} up`);
}

/** A machine with a cable to the bridge. */
export interface TestHost {
  address: string;
  /** Command that runs a program there; the program and its arguments are appended. */
  launcher: string[];
  /** Drops all traffic from now on, without closing connections. */
  cut(): Promise<void>;
  repair(): Promise<void>;
}

/** A host of the network, until the test ends. @param number unique, from 1 on */
export async function startHost(t: Test, number: number): Promise<TestHost> {
  // It holds the namespace until the channel to this process is closed.
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
    repair: () => ip(`link set ${socket} up`),
  };
}

async function ip(command: string, launcher: readonly string[] = []): Promise<void> {
  const [program = '', ...args] = [...launcher, 'ip', ...command.split(' ')];
  await run(program, args);
}

import { availableParallelism } from 'node:os';
import { runLogged } from './command.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from './fingerprint.mjs';
import { inRoot } from './paths.mjs';

/** The builds of the native core: folder, CMake options, target, and what else than the core its sources include. */
export const nativeBuilds = {
  addon: { dir: 'native/build', options: [], target: 'zerofleet', withTests: false },
  tests: { dir: 'native/build', options: [], target: 'zerofleet_all_tests', withTests: true },
  // What the tests of GPU workers run on.
  emulated: { dir: 'native/build', options: [], target: 'zerofleet_emulated_addon', withTests: true },
  'tests-asan': {
    dir: 'native/build-asan',
    options: ['-DZF_SANITIZE=address', '-DZF_BUILD_ADDON=OFF'],
    target: 'zerofleet_all_tests',
    withTests: true,
  },
  'tests-tsan': {
    dir: 'native/build-tsan',
    options: ['-DZF_SANITIZE=thread', '-DZF_BUILD_ADDON=OFF'],
    target: 'zerofleet_all_tests',
    withTests: true,
  },
};

const SOURCE = /(\.(cc|h|cu|cuh)|CMakeLists\.txt|\.cmake)$/;

function sources(withTests) {
  const accept = (path) => {
    if (!path.endsWith('/')) return SOURCE.test(path);
    if (path.startsWith('native/build') || path === 'native/js/') return false;
    return withTests || path !== 'native/test/';
  };
  return listFiles(['native'], accept);
}

const stampFile = (name) => inRoot(nativeBuilds[name].dir, `.stamp-${name}`);

/** True when this build was made from exactly these sources. */
export function nativeBuildIsCurrent(name) {
  return stampMatches(stampFile(name), fingerprint(sources(nativeBuilds[name].withTests)));
}

/** Configures and builds one target. CMake itself compiles only what changed. */
export async function buildNative(name) {
  const { dir, options, target, withTests } = nativeBuilds[name];
  const value = fingerprint(sources(withTests));
  const configure = ['cmake', '-S', 'native', '-B', dir, '-DCMAKE_BUILD_TYPE=Release', ...options];
  await runLogged(`native-${name}-configure`, configure);
  const jobs = String(availableParallelism());
  await runLogged(`native-${name}-build`, ['cmake', '--build', dir, '--target', target, '-j', jobs]);
  writeStamp(stampFile(name), value);
}

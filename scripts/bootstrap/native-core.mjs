import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { runLogged } from './command.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from './fingerprint.mjs';
import { inRoot } from './paths.mjs';

const presets = JSON.parse(readFileSync(inRoot('native', 'CMakePresets.json'), 'utf8'));

/** A build preset of native/CMakePresets.json. `dir`: its build folder, relative to the root. */
function build(preset, { withTests }) {
  const { configurePreset } = presets.buildPresets.find(({ name }) => name === preset);
  const { binaryDir } = presets.configurePresets.find(({ name }) => name === configurePreset);
  return { preset, configurePreset, dir: `native/${basename(binaryDir)}`, withTests };
}

/** The builds of the native core. `withTests`: whether they include the sources below native/test/. */
export const nativeBuilds = {
  core: build('core', { withTests: false }),
  addon: build('release', { withTests: false }),
  tests: build('tests', { withTests: true }),
  // What the tests of GPU workers run on.
  emulated: build('emulated', { withTests: true }),
  'tests-emulated': build('emulated-tests', { withTests: true }),
  'tests-asan': build('asan', { withTests: true }),
  'tests-tsan': build('tsan', { withTests: true }),
  // The CUDA backend as nvcc compiles it.
  cuda: build('cuda', { withTests: true }),
};

const SOURCE = /(\.(cc|h|cu|cuh)|CMakeLists\.txt|CMakePresets\.json|\.cmake)$/;

function sources(withTests) {
  const accept = (path) => {
    if (!path.endsWith('/')) return SOURCE.test(path);
    if (path.startsWith('native/build') || path === 'native/js/') return false;
    return withTests || path !== 'native/test/';
  };
  return listFiles(['native'], accept);
}

const stampFile = (name) => inRoot(nativeBuilds[name].dir, `.stamp-${name}`);
const currentStamp = (name) => fingerprint(sources(nativeBuilds[name].withTests));

/** True when this build was made from exactly these sources. */
export function nativeBuildIsCurrent(name) {
  return stampMatches(stampFile(name), currentStamp(name));
}

/**
 * How much of a build is done by a line of make (`[ 37%] …`) or ninja (`[3/8] …`), in per cent; null for other lines, such as those of
 * targets that an earlier build made.
 */
export function buildPercent(line) {
  const make = /^\[\s*(\d+)%\] (?!Built target)/.exec(line);
  if (make) return Number(make[1]);
  const ninja = /^\[(\d+)\/(\d+)\]/.exec(line);
  return ninja && Math.floor((100 * Number(ninja[1])) / Number(ninja[2]));
}

/**
 * Configures and builds one of the native builds. CMake itself compiles only what changed.
 * @param {string} name
 * @param {(percent: number) => void} [onProgress]
 */
export async function buildNative(name, onProgress = () => {}) {
  const { preset, configurePreset } = nativeBuilds[name];
  const value = currentStamp(name);
  const cwd = inRoot('native');
  await runLogged(`native-${name}-configure`, ['cmake', '--preset', configurePreset], { cwd });
  const onLine = (line) => {
    const percent = buildPercent(line);
    if (percent !== null) onProgress(percent);
  };
  const jobs = String(availableParallelism());
  await runLogged(`native-${name}-build`, ['cmake', '--build', '--preset', preset, '-j', jobs], {
    cwd,
    onLine,
  });
  writeStamp(stampFile(name), value);
}

import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runLogged } from './command.mjs';
import { fingerprint, listFiles, stampMatches, writeStamp } from './fingerprint.mjs';
import { inRoot } from './paths.mjs';

const presets = JSON.parse(readFileSync(inRoot('native', 'CMakePresets.json'), 'utf8'));

/** Builds without the sources below native/test/. */
const WITHOUT_TESTS = ['core', 'release'];

/**
 * The native builds, by their build presets in native/CMakePresets.json. `dir`: the build folder, relative to the root.
 */
const nativeBuilds = Object.fromEntries(
  presets.buildPresets.map(({ name, configurePreset }) => {
    const { binaryDir } = presets.configurePresets.find((preset) => preset.name === configurePreset);
    const dir = binaryDir.replace(/^\$\{sourceDir\}/, 'native');
    return [name, { configurePreset, dir, withTests: !WITHOUT_TESTS.includes(name) }];
  }),
);

const SOURCE = /(\.(cc|h|cu|cuh)|CMakeLists\.txt|CMakePresets\.json|\.cmake)$/;

function sources(withTests) {
  const accept = (path) => {
    if (!path.endsWith('/')) return SOURCE.test(path);
    if (path.startsWith('native/build') || path === 'native/js/') return false;
    return withTests || path !== 'native/test/';
  };
  return listFiles(['native'], accept);
}

const ALL_ISAS = 'all';
const wantsAllIsas = () => process.env.ZF_ALL_ISAS === '1';

/**
 * Names the instruction-set paths of a build: all of them, or the processor's flags from which native/cmake/isas.cmake
 * chooses. A build from a machine of another kind is therefore not current.
 * @param {string} cpuInfo
 */
export function isaStamp(cpuInfo, all = wantsAllIsas()) {
  const flags = /^flags\s*:.*$/m.exec(cpuInfo)?.[0] ?? '';
  return all ? ALL_ISAS : (flags.match(/\b(?:avx\w*|fma|f16c)\b/g) ?? []).sort().join(' ');
}

const stampFile = (name) => inRoot(nativeBuilds[name].dir, `.stamp-${name}`);

/**
 * Stamps that a build may have. The first is what a build gets now; one with all instruction-set paths serves every
 * machine.
 */
function currentStamps(name) {
  const made = fingerprint(sources(nativeBuilds[name].withTests));
  const cpuInfo = existsSync('/proc/cpuinfo') ? readFileSync('/proc/cpuinfo', 'utf8') : '';
  const isas = [isaStamp(cpuInfo), ALL_ISAS];
  return isas.map((paths) => `${made} ${paths}`);
}

/** True if this build was made from exactly these sources, with the instruction-set paths that are wanted here. */
export function nativeBuildIsCurrent(name) {
  return currentStamps(name).some((stamp) => stampMatches(stampFile(name), stamp));
}

/**
 * Progress of a build in percent, from a line of make (`[ 37%] …`) or ninja (`[3/8] …`); null for other lines, such as
 * those of targets that an earlier build made.
 */
export function buildPercent(line) {
  const make = /^\[\s*(\d+)%\] (?!Built target)/.exec(line);
  if (make) return Number(make[1]);
  const ninja = /^\[(\d+)\/(\d+)\]/.exec(line);
  return ninja && Math.floor((100 * Number(ninja[1])) / Number(ninja[2]));
}

/**
 * Removes a build folder that was configured for other sources: CMake refuses the folder of a moved checkout, and
 * writes into the original checkout of a copied one.
 * @param {string} dir of the build
 * @param {string} sourceDir absolute
 */
export function dropForeignBuild(dir, sourceDir) {
  const cache = join(dir, 'CMakeCache.txt');
  if (!existsSync(cache)) return;
  const [, home = ''] = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8')) ?? [];
  const isSame = existsSync(home) && realpathSync(home) === realpathSync(sourceDir);
  if (!isSame) rmSync(dir, { recursive: true });
}

/**
 * Configures and builds one of the native builds. CMake recompiles only changed files.
 * @param {string} name
 * @param {(percent: number) => void} [onProgress]
 */
export async function buildNative(name, onProgress = () => {}) {
  const { configurePreset, dir } = nativeBuilds[name];
  const [stamp] = currentStamps(name);
  const cwd = inRoot('native');
  dropForeignBuild(inRoot(dir), cwd);
  const isas = `-DZF_ALL_ISAS=${wantsAllIsas() ? 'ON' : 'OFF'}`;
  await runLogged(`native-${name}-configure`, ['cmake', '--preset', configurePreset, isas], { cwd });
  const onLine = (line) => {
    const percent = buildPercent(line);
    if (percent !== null) onProgress(percent);
  };
  const jobs = String(availableParallelism());
  await runLogged(`native-${name}-build`, ['cmake', '--build', '--preset', name, '-j', jobs], {
    cwd,
    onLine,
  });
  writeStamp(stampFile(name), stamp);
}

// Rules of the selection of tests by changes (select.mjs): dependencies that sources do not show, and files with
// special effects.

/** Suites that are no TypeScript files, the longest first. */
export const NATIVE_SUITES = ['tsan', 'asan', 'emulated-tests', 'cuda'].map((preset) => `native ${preset}`);
export const INFRA_SUITE = 'infra';

/**
 * Edges that no import, include or quoted path shows. Both ends are patterns of paths; `from` may also be a suite.
 * @type {(import('../../graph/source-graph.mjs').DeclaredEdge & {why: string})[]}
 */
export const DECLARED_EDGES = [
  {
    from: /^native (asan|emulated-tests|tsan)$/,
    to: /^native\/(?!js\/).*(?<!\.md|LICENSE)$/,
    why: 'each compiles all of native/ and runs all of its tests',
  },
  {
    from: /^native cuda$/,
    to: /^native\/(?!test\/)(.*\.(cu|cuh|cmake)|.*\/cuda\/.*|CMakeLists\.txt|CMakePresets\.json|cmake\/ptxas_log\.py)$|^tools\/gpu\/kernel_resources\.py$/,
    why: 'compiles the CUDA backend, and checks the registers of its kernels',
  },
  {
    from: /^infra$/,
    to: /^infra\/(?!(images|kubernetes)\/)|^tools\/test\/infra\.mjs$/,
    why: 'tests the modules and the machine image',
  },
  {
    from: /^native\/js\/addon\.ts$/,
    to: /^native\/(?!js\/|test\/).*(?<!\.md|LICENSE)$/,
    why: 'loads the addon, which is compiled from these',
  },
  {
    from: /^test\/e2e\/emulated\/addon\.ts$|^test\/.*\/gpu-[^/]*\.ts$/,
    to: /^native\/test\/(CMakeLists\.txt|cuda_emulator\/)/,
    why: 'loads the addon with an emulated CUDA device',
  },
  {
    from: /^test\/support\/families\.ts$/,
    to: /^job-document\/testing\/(families\/.*|family-sizes)\.json$/,
    why: 'reads the small models of all families',
  },
  {
    from: /^ops\/stack\/stack\.ts$/,
    to: /^(api|worker\/agent|autoscaler)\/main\.ts$/,
    why: 'starts programs by their names',
  },
  { from: /^state\/core\/library\.ts$/, to: /^state\/.*\.lua$/, why: 'loads the scripts of all subjects' },
  { from: /^openapi\.yaml$/, to: /^contracts\/openapi\//, why: 'is generated from these' },
  {
    from: /^test\/console\/console\.ts$/,
    to: /^clients\/console\/(?!.*\.test\.ts$)/,
    why: 'opens the console, which is bundled from clients/console/. Other tests do not open it',
  },
  {
    from: /^test\/e2e\/dev\.deep\.test\.ts$/,
    to: /^tools\/(docs|python-client|contract)\//,
    why: 'the development server generates files',
  },
  {
    from: /^test\/node-versions\/node-versions\.deep\.test\.ts$/,
    to: /^tools\/(setup|run|zerofleet)\.mjs$/,
    why: 'runs these on other versions of Node.js',
  },
  {
    from: /^platform\/testing\/kubernetes\/control-plane\.ts$/,
    to: /^tools\/test\/kubernetes\//,
    why: 'starts the programs that these build',
  },
  {
    from: /^test\/(docs\/kubernetes\.deep\.test|support\/kubernetes-stack)\.ts$/,
    to: /^infra\/kubernetes\//,
    why: 'applies the manifests',
  },
  { from: /^test\/docs\/reader\.ts$/, to: /^tools\/zerofleet\.mjs$/, why: 'pages call the command line' },
  {
    from: /^tools\/client-package\/pack\.mjs$/,
    to: /^clients\/typescript\/(?!.*(\.test\.ts$|\/testing\/))/,
    why: 'packs the folder',
  },
];

/** Changes of these affect every suite. */
export const AFFECTS_EVERYTHING =
  /^(package(-lock)?\.json|tsconfig\.json|tools\/test\.mjs|tools\/(bootstrap|graph)\/(?!.*\.test\.mjs$).*|tools\/test\/(?!infra|kubernetes|.*\.test\.mjs$).*)$/;

/** Files that affect no suite unless one reaches them. Any other file that no suite reaches affects every suite. */
export const AFFECTS_NOTHING = [
  { files: /\.test\.(ts|mjs)$/, why: 'a quick test' },
  { files: /\.md$|(^|\/)LICENSE$/, why: 'no deep test reads this page' },
  {
    files: /(^|\/)make[\w]*\.py$|^job-document\/testing\/hf\/families\.py$/,
    why: 'a person runs it to make golden data',
  },
  { files: /^bench\//, why: 'benchmarks' },
  { files: /^docs\/images\/|^test\/docs\/pictures\.ts$/, why: 'a person runs it to take pictures' },
  { files: /^infra\/images\//, why: 'tested by infra/images/prove.sh, which a person runs' },
  {
    files: /^tools\/(dev|lint|mutation|docs|python-client|contract)\/|^tools\/[^/]+\.mjs$/,
    why: 'tools of developers',
  },
  {
    files:
      /^(\.ci\/.*|\.dockerignore|\.gitignore|\.taprc|\.dependency-cruiser\.cjs|biome\.json|compose\.yaml|native\/\.clang-format)$/,
    why: 'settings of tools that no deep test runs',
  },
  { files: /^clients\/(typescript|console)\/tsconfig\.json$/, why: 'checked by every set-up' },
];

/**
 * Helpers and data of tests. They affect no suite if only quick tests reach them. Product code that no suite reaches
 * affects every suite.
 */
export const BELONGS_TO_TESTS = /\/testing\/|^test\/|(?<!\.(ts|tsx|mjs|lua))$/;

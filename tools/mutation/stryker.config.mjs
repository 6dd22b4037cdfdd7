// StrykerJS configuration for one area of areas.mjs, selected by ZF_MUTATION_AREA. StrykerJS changes a copy of the
// sources with all mutants at once, each switched on separately. Changed files are compiled there, and the area's tests
// run for each mutant that they cover.
import { AREAS } from './areas.mjs';

const name = process.env.ZF_MUTATION_AREA;
const { sources, tests } = AREAS[name];

export default {
  mutate: sources,
  testRunner: 'tap',
  // A failed test runs to its end, so that it stops what it started.
  tap: {
    testFiles: tests.map((path) => `compiled/${path.replace(/\.ts$/, '.js')}`),
    forceBail: false,
    nodeArgs: ['--import', './tools/mutation/own-fixtures.mjs'],
  },
  coverageAnalysis: 'perTest',
  buildCommand: ['node', 'tools/mutation/compile.mjs', ...sources].join(' '),
  disableTypeChecks: false,
  // StrykerJS would rewrite it for its copy, with a compiler that it does not include.
  tsconfigFile: 'none',
  plugins: ['@stryker-mutator/tap-runner', './tools/mutation/messages.mjs'],
  ignorers: ['messages'],
  ignorePatterns: ['.build', '.ci', '.zerofleet', '.tap', 'docs', 'infra', 'native/build*'],
  tempDirName: '.build/stryker',
  reporters: ['json', 'html', 'progress-append-only'],
  jsonReporter: { fileName: `.build/mutation/${name}.json` },
  htmlReporter: { fileName: `.build/mutation/${name}.html` },
  timeoutMS: 10_000,
  allowConsoleColors: false,
};

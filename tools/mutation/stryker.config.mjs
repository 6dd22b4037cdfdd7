// StrykerJS for one area of areas.mjs, which ZF_MUTATION_AREA names. It changes a copy of the sources, all mutants at once and each to be
// switched on by itself; what changed is compiled there, and the tests of the area run for each mutant that they come by.
import { AREAS } from './areas.mjs';

const name = process.env.ZF_MUTATION_AREA;
const { sources, tests } = AREAS[name];

export default {
  mutate: sources,
  testRunner: 'tap',
  // A test that has failed goes on to its end: it has to stop what it started.
  tap: {
    testFiles: tests.map((path) => `dist/${path.replace(/\.ts$/, '.js')}`),
    forceBail: false,
    nodeArgs: ['--import', './tools/mutation/own-fixtures.mjs'],
  },
  coverageAnalysis: 'perTest',
  buildCommand: ['node', 'tools/mutation/compile.mjs', ...sources].join(' '),
  disableTypeChecks: false,
  // StrykerJS would rewrite one for its copy, with a compiler that it does not bring.
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

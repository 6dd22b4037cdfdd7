// Checks openapi.yaml with the rules of Redocly and Spectral, all as errors. Both run in this process: their command
// lines report usage and check for updates, their libraries do not.
import { readFileSync } from 'node:fs';
import { createConfig, lint } from '@redocly/openapi-core';
import spectral from '@stoplight/spectral-core';
import parsers from '@stoplight/spectral-parsers';
import rulesets from '@stoplight/spectral-rulesets';

const redoclyConfig = {
  extends: ['recommended-strict'],
  rules: {
    // It does not recognize that `then` refers to the properties beside `if`.
    'no-required-schema-properties-undefined': 'off',
    // A webhook's name is its key. Spectral has this rule for paths only.
    'operation-operationId': 'off',
  },
};

const spectralRuleset = {
  extends: [[rulesets.oas, 'recommended']],
  rules: {
    // Each operator is the contact of their own server; there is no common one.
    'info-contact': 'off',
    // OpenAPI 3.1 allows roles for bearer keys, the rule knows only OAuth scopes. Loading the contract refuses unknown
    // ones.
    'oas3-operation-security-defined': 'off',
    // `items: false` ends a tuple in JSON Schema 2020-12; the rule misreads it.
    'array-items': 'off',
  },
};

async function redoclyProblems(ref) {
  const config = await createConfig(redoclyConfig);
  return (await lint({ ref, config })).map(
    ({ ruleId, message, location: [at] }) => `${at.pointer} ${message} (redocly: ${ruleId})`,
  );
}

async function spectralProblems(text) {
  const linter = new spectral.Spectral();
  linter.setRuleset(spectralRuleset);
  const problems = await linter.run(new spectral.Document(text, parsers.Yaml));
  return problems.map(
    ({ code, message, path, range }) =>
      `line ${range.start.line + 1}: ${path.join('/')} ${message} (spectral: ${code})`,
  );
}

/** @returns {Promise<string[]>} one line per problem of an OpenAPI document */
export async function openapiProblems(file) {
  return [...(await redoclyProblems(file)), ...(await spectralProblems(readFileSync(file, 'utf8')))];
}

// openapi.yaml by the rules of Redocly and Spectral, all of them as errors. Both run in this process: their command lines report usage
// and ask for updates, their libraries do not.
import { readFileSync } from 'node:fs';
import { createConfig, lint } from '@redocly/openapi-core';
import spectral from '@stoplight/spectral-core';
import parsers from '@stoplight/spectral-parsers';
import rulesets from '@stoplight/spectral-rulesets';

const redoclyConfig = {
  extends: ['recommended-strict'],
  rules: {
    // It doesn't see that `then` speaks of the properties beside `if`.
    'no-required-schema-properties-undefined': 'off',
    // A webhook's name is its key. Spectral has this rule for paths alone.
    'operation-operationId': 'off',
  },
};

const spectralRuleset = {
  extends: [[rulesets.oas, 'recommended']],
  rules: {
    // Who runs a server is whom to ask; there is no contact for all of them.
    'info-contact': 'off',
    // Of a bearer key OpenAPI 3.1 has roles, the rule only knows scopes of OAuth. Reading the contract refuses unknown ones.
    'oas3-operation-security-defined': 'off',
    // `items: false` ends a tuple in JSON Schema 2020-12; the rule takes it for none.
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

/** @returns {Promise<string[]>} one line for each problem of an OpenAPI document */
export async function openapiProblems(file) {
  return [...(await redoclyProblems(file)), ...(await spectralProblems(readFileSync(file, 'utf8')))];
}

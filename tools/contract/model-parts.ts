/** The parts of each family as C++, for native/model/config/model_parts.h. */
import { isDerived, PARAM_NAMES, PARTS, type ParamNames, type PartParams } from '../../job-document/index.js';

/** `query_norm` → `kQueryNorm`. */
const constant = (name: string) => `k_${name}`.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

function fact(name: Parameters<typeof isDerived>[0] | undefined, otherwise: string): string {
  if (name === undefined) return otherwise;
  return isDerived(name) ? `c.${name}()` : `c.${name}`;
}

function row(part: keyof typeof PARTS, module: string): string {
  const params: PartParams = PARTS[part];
  const { kind, to_residual } = params;
  const values = [
    constant(part),
    `PartKind::${constant(kind)}`,
    JSON.stringify(module),
    fact(params.in, '0'),
    fact(params.out, '0'),
    fact(params.bias, 'false'),
    to_residual ? 'residual_std' : 'std',
    fact(params.when, 'true'),
  ];
  return `      {${values.join(', ')}},\n`;
}

function naming({ naming, in_first, modules }: ParamNames): string {
  const rows = Object.entries(modules).map(([part, module]) => row(part as keyof typeof PARTS, module));
  return `  if (c.naming == "${naming}") {\n    return {${in_first}, {\n${rows.join('')}    }};\n  }\n`;
}

export function renderModelParts(): string {
  return `// Generated from PARTS and the families of job-document/model by \`npm run generate\`; change them there.
// clang-format off
#include "core/error.h"
#include "model/config/model_parts.h"

namespace zerofleet {

ModelParts model_parts(const ModelConfig& c) {
  using enum ModelPart;
  const double std = c.initializer_range, residual_std = c.residual_initializer_range;
${PARAM_NAMES.map(naming).join('')}  throw Error("invalid_model_config", "naming: no family names its parameters as " + c.naming);
}

}  // namespace zerofleet
`;
}

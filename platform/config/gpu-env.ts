/**
 * Variables that change which sums the libraries on a GPU compute. Ranks get them only by ZEROFLEET_GPU_ENV, never from
 * the agent's environment; the native core puts them into the numerics fingerprint (kernels/backends/cuda/numerics.cc).
 */
const GPU_VARIABLE = /^(NVIDIA_TF32_OVERRIDE|NCCL_(ALGO|PROTO)|(CUBLAS|CUDNN)\w*)$/;
const ENTRY = /^(\w+)=([\w.:,;^+/-]{1,100})$/;

export function isGpuVariable(name: string): boolean {
  return GPU_VARIABLE.test(name);
}

/** Parses `none` or entries `NAME=VALUE` with spaces between. */
export function gpuEnv(text: string): Readonly<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const entry of text === 'none' ? [] : text.trim().split(/\s+/)) {
    const [, name = '', value = ''] = ENTRY.exec(entry) ?? [];
    if (name === '')
      throw new Error(
        `must be none or entries such as NVIDIA_TF32_OVERRIDE=0 with spaces between, not ${JSON.stringify(entry)}`,
      );
    if (!isGpuVariable(name))
      throw new Error(
        `may set NVIDIA_TF32_OVERRIDE, CUBLAS*, CUDNN*, NCCL_ALGO and NCCL_PROTO; ranks have ${name} from the environment of the agent`,
      );
    if (name in env) throw new Error(`sets ${name} twice`);
    env[name] = value;
  }
  return env;
}

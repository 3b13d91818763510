export function shippedManifest(): {
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
};

# Writes build_info.h: commit, compiler, flags. Touches the file only when something changed.
set(commit unknown)
set(dirty 0)
execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD
  OUTPUT_VARIABLE head RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT failed)
  set(commit ${head})
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(dirty 1)
  endif()
endif()
string(REGEX REPLACE " +" " " FLAGS "${FLAGS}")
string(STRIP "${FLAGS}" FLAGS)
set(text "#define MLA_BUILD_COMMIT \"${commit}\"
#define MLA_BUILD_DIRTY ${dirty}
#define MLA_BUILD_COMPILER \"${COMPILER}\"
#define MLA_BUILD_FLAGS \"${FLAGS}\"
#define MLA_BUILD_SANITIZER \"${SANITIZE}\"
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
